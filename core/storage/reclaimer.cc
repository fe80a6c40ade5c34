#include "core/storage/reclaimer.h"

#include <rocksdb/convenience.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/storage/open_database.h"
#include "core/storage/table_files.h"

namespace softlookup {

Reclaimer::Reclaimer(rocksdb::Env& env, std::string directory, Flush flush,
                     absl::Duration room_interval)
    : env_(env),
      directory_(std::move(directory)),
      flush_(std::move(flush)),
      room_interval_(room_interval),
      thread_([this] { Run(); }) {}

Reclaimer::~Reclaimer() {
  Detach();
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  thread_.join();
}

void Reclaimer::Attach(rocksdb::DB& db, Disk disk, std::uint64_t spare_bytes) {
  absl::MutexLock lock(&mutex_);
  SOFTLOOKUP_CHECK(db_ == nullptr);
  db_ = &db;
  disk_ = disk;
  spare_bytes_ = spare_bytes;
  has_news_ = true;
}

void Reclaimer::Detach() {
  rocksdb::DB* db = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    db = std::exchange(db_, nullptr);
  }
  if (db == nullptr) return;
  cancelled_ = true;
  // A compaction that waits for another one of RocksDB's does not see `cancelled_`.
  rocksdb::CancelAllBackgroundWork(db, /*wait=*/false);
  const auto is_idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !is_working_; };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&is_idle));
  cancelled_ = false;
}

void Reclaimer::AllowCompaction() {
  absl::MutexLock lock(&mutex_);
  may_compact_ = true;
  has_news_ = true;
}

rocksdb::Status Reclaimer::Reclaim(absl::Span<const KeyRange> deleted, bool& may_have_dropped) {
  rocksdb::DB* db = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    db = db_;
  }
  SOFTLOOKUP_CHECK(db != nullptr);
  rocksdb::Status status;
  may_have_dropped = false;
  // If the mutex is held, the thread compacts, which takes long. Nothing is dropped then, and the
  // thread compacts `deleted` later.
  if (compaction_mutex_.TryLock()) {
    status = DropTables(*db, deleted, may_have_dropped);
    compaction_mutex_.Unlock();
  }
  Add(deleted);
  return status;
}

void Reclaimer::Add(absl::Span<const KeyRange> ranges) {
  if (ranges.empty()) return;
  absl::MutexLock lock(&mutex_);
  added_.insert(added_.end(), ranges.begin(), ranges.end());
  has_news_ = true;
}

void Reclaimer::AwaitIdle() {
  const auto is_idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !is_working_ && !has_news_;
  };
  absl::MutexLock lock(&mutex_);
  SOFTLOOKUP_CHECK(db_ != nullptr);
  mutex_.Await(absl::Condition(&is_idle));
}

bool Reclaimer::IsFreeing(std::uint64_t free_bytes) {
  absl::MutexLock lock(&mutex_);
  if (needed_bytes_ > 0 && free_bytes >= needed_bytes_) has_news_ = true;
  return (has_news_ || is_working_) && (!added_.empty() || deleted_bytes_ > 0);
}

bool Reclaimer::AwaitWork() {
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return closed_ || (db_ != nullptr && has_news_);
  };
  if (needed_bytes_ == 0) {
    mutex_.Await(absl::Condition(&has_work));
    return true;
  }
  if (mutex_.AwaitWithTimeout(absl::Condition(&has_work), room_interval_)) return true;
  return db_ != nullptr && FreeBytes(env_, directory_) >= needed_bytes_;
}

void Reclaimer::Run() {
  // Whether Free() ended for want of room, and nothing was deleted since. Without this, the thread
  // would fill the disk again and again: the log is opened anew after a full disk, and what is
  // deleted is still there.
  bool has_run_out_of_room = false;
  for (;;) {
    rocksdb::DB* db = nullptr;
    Disk disk = Disk::kHasRoom;
    std::uint64_t spare_bytes = 0;
    bool may_compact = false;
    std::vector<KeyRange> added;
    {
      absl::MutexLock lock(&mutex_);
      if (!AwaitWork()) continue;
      if (closed_) return;
      has_news_ = false;
      is_working_ = true;
      db = db_;
      disk = disk_;
      spare_bytes = spare_bytes_;
      may_compact = may_compact_ && !has_found_damage_;
      added = std::exchange(added_, {});
    }
    if (!added.empty()) has_run_out_of_room = false;
    for (KeyRange& range : added) {
      deleted_.Add(std::move(range), [db](const KeyRange& joined) { return BytesIn(*db, joined); });
    }
    needed_bytes_ = 0;
    // Free() may write tables of level 0. If they were not compacted, they would become ever more.
    if (may_compact && !deleted_.empty() && !has_run_out_of_room) {
      has_run_out_of_room = Free(*db, disk, spare_bytes).IsNoSpace();
    }
    deleted_bytes_ = deleted_.bytes();
    absl::MutexLock lock(&mutex_);
    is_working_ = false;
  }
}

rocksdb::Status Reclaimer::Free(rocksdb::DB& db, Disk disk, std::uint64_t spare_bytes) {
  const std::uint64_t buffers = BytesOfWriteBuffers(db);
  const std::uint64_t tenth = (BytesOfTables(db) + buffers) / 10;
  const std::uint64_t worthwhile = disk == Disk::kFull ? kBytesMin : std::max(kBytesMin, tenth);
  const auto has_room_for = [&](std::uint64_t bytes) {
    const std::uint64_t free = FreeBytes(env_, directory_);
    return free >= spare_bytes && free - spare_bytes >= bytes;
  };
  if (deleted_.bytes() >= worthwhile) {
    // Few bytes are not worth a compaction. The compaction of another range often frees them, too.
    const std::vector<KeyRange> ranges = deleted_.RangesOfAtLeast(kTableBlockBytes);
    if (cancelled_) return rocksdb::Status::Incomplete();
    const std::uint64_t needed = BytesFor(db, ranges);
    if (has_room_for(needed)) return Compact(db, ranges);
    if (!cancelled_) needed_bytes_ = spare_bytes + needed;
  }
  if (buffers < worthwhile) return rocksdb::Status::OK();
  if (!has_room_for(buffers) && !has_room_for(BytesFor(db, {}))) return rocksdb::Status::OK();
  rocksdb::Status status = flush_(db, cancelled_);
  RemoveUnusedFiles(db);
  return status;
}

std::uint64_t Reclaimer::BytesFor(rocksdb::DB& db, const std::vector<KeyRange>& ranges) {
  const std::uint64_t kept = BytesKeptOfWriteBuffers(db, cancelled_);
  if (ranges.empty()) return kept;
  std::uint64_t garbage = 0;
  for (const KeyRange& range : ranges) garbage += cancelled_ ? 0 : BytesIn(db, range);
  const std::uint64_t tables = BytesOfTables(db);
  const std::uint64_t left = tables - std::min(garbage, tables);
  // What is kept of the buffers is written twice: by the flush, then by the compaction.
  return std::min(BytesToCompact(db, ranges), left + 2 * kept);
}

rocksdb::Status Reclaimer::Compact(rocksdb::DB& db, const std::vector<KeyRange>& ranges) {
  // Compaction would flush the buffers itself, but without a look at whether the log has failed.
  rocksdb::Status status = flush_(db, cancelled_);
  // If compaction read a damaged record, RocksDB would take no more writes. Nobody has read these
  // records since they were deleted, so they are read first.
  if (status.ok()) status = ReadTables(db, ranges, cancelled_);
  if (status.IsCorruption()) StopCompaction(db);
  for (const KeyRange& range : ranges) {
    if (!status.ok()) return status;
    if (cancelled_) return rocksdb::Status::Incomplete();
    status = CompactRange(db, range);
  }
  if (!status.ok()) return status;
  deleted_.Clear();
  RemoveUnusedFiles(db);
  return status;
}

rocksdb::Status Reclaimer::CompactRange(rocksdb::DB& db, const KeyRange& range) {
  // The compaction of an earlier range may have freed most of this one.
  if (BytesIn(db, range) < kTableBlockBytes) return rocksdb::Status::OK();
  absl::MutexLock lock(&compaction_mutex_);
  return CompactTables(db, range, cancelled_);
}

void Reclaimer::StopCompaction(rocksdb::DB& db) {
  has_found_damage_ = true;
  // An error is ignored: the option is set before RocksDB writes it to a file, which can fail.
  db.SetOptions({{"disable_auto_compactions", "true"}}).PermitUncheckedError();
}

}  // namespace softlookup
