#include "core/storage/log_database.h"

#include <rocksdb/utilities/checkpoint.h>

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/storage/empty_tables.h"
#include "core/storage/records.h"
#include "core/storage/rocksdb_errors.h"
#include "core/storage/table_files.h"

namespace softlookup {
namespace {

// Shortest time between two attempts to make the reserve.
constexpr absl::Duration kReserveInterval = absl::Seconds(30);
// With so much room, writes need not wait until what was deleted is freed.
constexpr std::uint64_t kAmpleRoom = 4 * kRoomToReopen;
// A write looks again whether there is room to compact tables once this time has passed, or tables
// have changed.
constexpr absl::Duration kRoomInterval = absl::Seconds(10);

}  // namespace

LogDatabase::LogDatabase(std::string directory, RocksdbAccess access, rocksdb::Env* env)
    : directory_(std::move(directory)),
      access_(access),
      env_(env),
      database_env_(HideErrorsOfEmptyTables(*env)),
      synced_sequence_(absl::StrCat(directory_, "/", kSyncedName)),
      reserve_(absl::StrCat(directory_, "/", kReserveName)),
      reclaimer_(access == RocksdbAccess::kWrite
                     ? std::make_unique<Reclaimer>(
                           *env, directory_,
                           [this](rocksdb::DB& db, const std::atomic<bool>& cancelled) {
                             return flush_guard_.Flush(db, cancelled);
                           })
                     : nullptr) {}

LogDatabase::~LogDatabase() {
  if (lock_ != nullptr) env_->UnlockFile(lock_);
  if (access_ == RocksdbAccess::kRead || db_ == nullptr || !failure_.is_none()) return;
  // Syncs what was written without a sync, so that a crash of the machine after a clean stop
  // loses nothing. Errors are ignored, because these writes were acknowledged as not yet synced.
  if (has_unsynced_ && db_->SyncWAL().ok()) MarkSynced();
  // Writes what is in RAM to tables, so that the next start has nothing to replay. If there is no
  // room for the tables, the next start replays the write-ahead log.
  flush_guard_.FlushBlockingWrites(*db_).PermitUncheckedError();
}

absl::Status LogDatabase::Open() {
  if (access_ == RocksdbAccess::kRead) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(db_,
                                OpenDatabaseToRead(Options(), directory_, synced_sequence_, lock_));
  } else {
    SOFTLOOKUP_RETURN_IF_ERROR(OpenToWrite());
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(const bool has_format, ReadFormat(*db_));
  if (has_format) return absl::OkStatus();
  if (access_ == RocksdbAccess::kRead) return DamagedError("it does not say what format it has");
  rocksdb::WriteBatch format;
  format.Put(FormatKey(), EncodeFormat());
  SOFTLOOKUP_RETURN_IF_ERROR(Write(format, Sync::kYes, /*makes_room=*/false));
  MakeReserve();
  return absl::OkStatus();
}

absl::Status LogDatabase::OpenToWrite() {
  absl::StatusOr<std::unique_ptr<rocksdb::DB>> db =
      OpenDatabase(Options(), directory_, synced_sequence_);
  if (IsFullDiskError(db.status())) {
    // Opens it so that stores on a full disk can still be read and deleted.
    reserve_.Release();
    if (const rocksdb::Status status = SyncLogFiles(*env_, directory_); !status.ok()) {
      return UnavailableError(absl::StrCat("cannot sync the data directory ", directory_), status);
    }
    db = OpenDatabase(FullDiskOptions(Options()), directory_, synced_sequence_);
    on_full_disk_ = db.ok();
  }
  SOFTLOOKUP_RETURN_IF_ERROR(db.status());
  UseDatabase(*std::move(db));
  last_sequence_ = db_->GetLatestSequenceNumber();
  if (on_full_disk_) failure_.OnTooLittleRoom(RoomNow());
  return absl::OkStatus();
}

rocksdb::Options LogDatabase::Options() const { return LogOptions(database_env_.get(), errors_); }

void LogDatabase::UseDatabase(std::unique_ptr<rocksdb::DB> db) {
  db_ = std::move(db);
  if (on_full_disk_) {
    reclaimer_->Attach(*db_, Reclaimer::Disk::kFull, /*spare_bytes=*/0);
  } else {
    reclaimer_->Attach(*db_, Reclaimer::Disk::kHasRoom, kRoomToReopen);
    next_reserve_time_ = absl::InfinitePast();
    MakeReserve();
  }
  {
    absl::MutexLock lock(&room_mutex_);
    has_room_to_compact_ = false;  // Options() has compaction disabled.
    next_look_at_room_ = absl::InfinitePast();
  }
  LetCompactWhereThereIsRoom();
}

void LogDatabase::LetCompactWhereThereIsRoom() {
  if (!compacts_ || db_ == nullptr || on_full_disk_ || reclaimer_->has_found_damage()) return;
  const std::uint64_t tables = VersionOfTables(*db_);
  const absl::Time now = absl::Now();
  absl::MutexLock lock(&room_mutex_);
  if (tables == seen_tables_ && now < next_look_at_room_) return;
  seen_tables_ = tables;
  next_look_at_room_ = now + kRoomInterval;
  const std::uint64_t needed = kRoomToReopen + BytesToCompactByItself(*db_);
  const bool has_room = FreeBytes(*env_, directory_) >= needed;
  if (has_room == has_room_to_compact_) return;
  has_room_to_compact_ = has_room;
  // Errors are ignored: RocksDB sets the option before it writes it to a file, which can fail.
  if (has_room) {
    db_->EnableAutoCompaction({db_->DefaultColumnFamily()}).PermitUncheckedError();
  } else {
    db_->SetOptions({{"disable_auto_compactions", "true"}}).PermitUncheckedError();
  }
}

absl::Status LogDatabase::Write(rocksdb::WriteBatch& changes, Sync sync, bool makes_room) {
  SOFTLOOKUP_CHECK(!makes_room || changes.GetDataSize() <= kFullDiskChangesBytesMax);
  FindBackgroundError();
  if (failure_.is_full_disk()) ReopenIfThereIsRoom();
  absl::Status status = failure_.is_none() ? WriteToOpen(changes, sync) : failure_.status();
  if (failure_.is_full_disk() && makes_room) status = WriteOnFullDisk(changes);
  if (failure_.is_none()) LetCompactWhereThereIsRoom();
  return status;
}

void LogDatabase::FindBackgroundError() {
  const rocksdb::Status error = errors_->first();
  if (error.ok()) return;
  // While the disk is full, only an error of another kind is news: room does not help against it.
  const bool is_news =
      failure_.is_none() || (failure_.is_full_disk() && db_ != nullptr && !error.IsNoSpace());
  if (!is_news) return;
  // A backup syncs the write-ahead log, too, so the failed sync may not be one of WriteToOpen().
  if (failure_.is_none() && errors_->has(rocksdb::BackgroundErrorReason::kWriteCallback)) {
    sync_has_failed_ = true;
  }
  failure_.OnError(error);
}

absl::Status LogDatabase::WriteToOpen(rocksdb::WriteBatch& changes, Sync sync) {
  rocksdb::Status status;
  if (changes.Count() > 0) {
    status = flush_guard_.Write(*db_, changes);
    has_unsynced_ = true;
  }
  if (status.ok() && sync == Sync::kYes && has_unsynced_) {
    // A call of its own, so that it is known whether the write or the sync failed.
    status = db_->SyncWAL();
    // RocksDB then notes in its manifest what it synced. If only that has no room, the changes
    // are safe, and the next Write() finds the error in `errors_`.
    using Reason = rocksdb::BackgroundErrorReason;
    if (status.IsNoSpace() && errors_->has(Reason::kManifestWrite) &&
        !errors_->has(Reason::kWriteCallback)) {
      status = rocksdb::Status::OK();
    }
    sync_has_failed_ = !status.ok();
  }
  if (!status.ok()) {
    failure_.OnError(status);
    return failure_.status();
  }
  last_sequence_ = db_->GetLatestSequenceNumber();
  if (sync == Sync::kYes && has_unsynced_) MarkSynced();
  return absl::OkStatus();
}

absl::Status LogDatabase::WriteOnFullDisk(rocksdb::WriteBatch& changes) {
  absl::Status status = failure_.status();
  // The first attempt opens the database, unless it is open for writes on a full disk already, and
  // nothing has failed in it since. The second one always opens it.
  for (int attempt = 0; attempt < 2 && failure_.is_full_disk() && !sync_has_failed_; ++attempt) {
    if (attempt > 0 || !on_full_disk_ || !errors_->first().ok()) {
      if (!mutex_.TryLock()) return status;  // Another thread copies or reads the database.
      reserve_.Release();
      Reopen(/*on_full_disk=*/true);
      mutex_.Unlock();
      if (!failure_.is_none()) {
        status = failure_.status();
        continue;
      }
    }
    status = WriteToOpen(changes, Sync::kYes);
    if (status.ok()) {
      failure_.OnTooLittleRoom(RoomNow());
      break;
    }
  }
  return status;
}

void LogDatabase::MarkSynced() {
  synced_sequence_.Set(last_sequence_);
  has_unsynced_ = false;
}

LogFailure::Room LogDatabase::RoomNow() const {
  return {.free_bytes = FreeBytes(*env_, directory_),
          .needed_bytes = kRoomToReopen,
          .deleted_bytes = reclaimer_->deleted_bytes(),
          .needed_to_reclaim_bytes = reclaimer_->needed_bytes()};
}

void LogDatabase::ReopenIfThereIsRoom() {
  const LogFailure::Room room = RoomNow();
  if (room.free_bytes < room.needed_bytes) return failure_.OnTooLittleRoom(room);
  // Where room is scarce, what was deleted is freed first. Otherwise new writes would take the room
  // that freeing it needs.
  if (on_full_disk_ && room.free_bytes < kAmpleRoom && reclaimer_->IsFreeing(room.free_bytes)) {
    return failure_.OnTooLittleRoom(room);
  }
  if (!mutex_.TryLock()) return;  // Another thread copies or reads the database.
  Reopen(/*on_full_disk=*/false);
  mutex_.Unlock();
}

void LogDatabase::Reopen(bool on_full_disk) {
  reclaimer_->Detach();
  db_ = nullptr;
  on_full_disk_ = false;
  errors_->Clear();
  if (on_full_disk) {
    // RocksDB keeps the write-ahead logs that it finds, and syncs only the one that it adds. No
    // synced change may follow changes that can be lost, so the old logs are synced first. If that
    // fails, it is unknown what the kernel has of a file, and the log takes no more changes.
    if (const rocksdb::Status status = SyncLogFiles(*env_, directory_); !status.ok()) {
      return failure_.OnError(rocksdb::Status::IOError(status.ToString()));
    }
  }
  absl::StatusOr<std::unique_ptr<rocksdb::DB>> db = OpenDatabase(
      on_full_disk ? FullDiskOptions(Options()) : Options(), directory_, synced_sequence_);
  if (!db.ok()) return failure_.OnReopened(db.status(), last_sequence_);
  on_full_disk_ = on_full_disk;
  sync_has_failed_ = false;
  UseDatabase(*std::move(db));
  failure_.OnReopened(db_->GetLatestSequenceNumber(), last_sequence_);
}

void LogDatabase::DropDeleted(absl::Span<const KeyRange> deleted) {
  bool may_have_dropped = false;
  reclaimer_->Reclaim(deleted, may_have_dropped).PermitUncheckedError();
  // If the deletion was in a table that was dropped, records that it deleted may appear again.
  if (!may_have_dropped || !errors_->first().ok() || !HasRecords(*db_, deleted)) return;
  rocksdb::WriteBatch again;
  for (const KeyRange& range : deleted) again.DeleteRange(range.begin, range.end);
  WriteToOpen(again, Sync::kYes).IgnoreError();
}

void LogDatabase::MakeReserve() {
  if (on_full_disk_ || reserve_.is_held()) return;
  const absl::Time now = absl::Now();
  if (now < next_reserve_time_) return;
  next_reserve_time_ = now + kReserveInterval;
  reserve_.Make(FreeBytes(*env_, directory_));
}

absl::Status LogDatabase::Use(absl::FunctionRef<absl::Status(rocksdb::DB&)> use) const {
  absl::ReaderMutexLock lock(&mutex_);
  return db_ == nullptr ? failure_.status() : use(*db_);
}

void LogDatabase::AllowTableCompaction() {
  absl::ReaderMutexLock lock(&mutex_);
  compacts_ = true;
  LetCompactWhereThereIsRoom();
  reclaimer_->AllowCompaction();
}

absl::Status LogDatabase::CopyError(const std::string& directory,
                                    const rocksdb::Status& status) const {
  // A copy first writes the write buffers to tables, in the database's own directory. If that
  // fails, it is an error in the background, and `status` may only say that there was one.
  const rocksdb::Status background = errors_->first();
  const rocksdb::Status& cause = background.ok() ? status : background;
  const std::string text = status.ToString();
  const bool is_of_copy = background.ok() && (absl::StrContains(text, directory) ||
                                              !absl::StrContains(text, directory_ + "/"));
  const absl::string_view full = cause.IsNoSpace() ? ", whose disk is full" : "";
  return UnavailableError(
      is_of_copy ? absl::StrCat("cannot copy the data directory to ", directory, full)
                 : absl::StrCat("cannot copy the data directory, because its own files in ",
                                directory_, full, ", could not be written or read"),
      cause);
}

absl::Status LogDatabase::CopyTo(const std::string& directory) {
  absl::ReaderMutexLock lock(&mutex_);
  if (db_ == nullptr) return failure_.status();
  // The checkpoint would flush the write buffers even after the log has failed. BeginFlush()
  // returns an error then.
  rocksdb::Status status = flush_guard_.BeginFlush(*db_);
  if (status.IsTryAgain()) status = rocksdb::Status::OK();  // The checkpoint waits and flushes.
  rocksdb::Checkpoint* made = nullptr;
  if (status.ok()) status = rocksdb::Checkpoint::Create(db_.get(), &made);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  if (status.ok()) status = checkpoint->CreateCheckpoint(directory);
  return status.ok() ? absl::OkStatus() : CopyError(directory, status);
}

}  // namespace softlookup
