#ifndef SOFTLOOKUP_CORE_STORAGE_RECLAIMER_H_
#define SOFTLOOKUP_CORE_STORAGE_RECLAIMER_H_

#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/storage/deleted_ranges.h"
#include "core/storage/records.h"

namespace softlookup {

// Frees the disk that deleted ranges of records take. Reclaim() drops whole tables. Once compaction
// is allowed, a thread of its own also frees what other deleted records take:
// - Compacts the tables that have deleted records when those records take a tenth of the database,
//   or on a full disk kBytesMin.
// - Writes the write buffers to tables, without their deleted records, when the buffers take as
//   much.
// After an error, the thread leaves the database alone until more is deleted or another database is
// attached. If the disk was full, it leaves the next databases alone, too, until more is deleted.
// Thread-safe.
class Reclaimer {
 public:
  // Writes the write buffers of a database to tables. Returns an error, and writes none, if the
  // database has failed: RocksDB must not be asked again then. Returns an error soon after
  // `cancelled` is true.
  using Flush = std::function<rocksdb::Status(rocksdb::DB&, const std::atomic<bool>& cancelled)>;

  // Deleted records, or write buffers, of fewer bytes are left as they are.
  static constexpr std::uint64_t kBytesMin = std::uint64_t{1} << 20;
  // How often the thread looks for room that it lacks.
  static constexpr absl::Duration kRoomInterval = absl::Seconds(5);
  // The thread remembers at most this many ranges, as DeletedRanges says. The next start finds the
  // forgotten ones in the tables.
  static constexpr std::size_t kRangesMax = 100'000;

  // The databases to attach are in `directory` of `env`, which must outlive this object.
  Reclaimer(rocksdb::Env& env, std::string directory, Flush flush,
            absl::Duration room_interval = kRoomInterval);
  ~Reclaimer();  // Detaches the database.
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  enum class Disk { kHasRoom, kFull };

  // Begins to work on `db`. Must not be called while a database is attached. The thread writes
  // tables only if the disk then keeps `spare_bytes` of free room.
  void Attach(rocksdb::DB& db, Disk disk, std::uint64_t spare_bytes);
  // Stops the thread's work on the database, and waits until it has ended. Cancels RocksDB's other
  // work in the background, too, but does not wait for that. What is left to do is done on the next
  // database. After this, the database can only be closed. Does nothing if none is attached.
  void Detach();

  // Allows compaction from now on. Before, tables are only dropped.
  void AllowCompaction();
  // Returns whether a deleted record could not be read as it was written. From then on, neither the
  // reclaimer nor RocksDB by itself begins a compaction of the database. Of the databases that are
  // attached later, the reclaimer compacts none.
  bool has_found_damage() const { return has_found_damage_; }
  // Returns about how many bytes of tables the deleted records take that the thread knows of and
  // has not freed. Each counts with the bytes that it took when the thread took notice of it.
  std::uint64_t deleted_bytes() const { return deleted_bytes_; }

  // Returns about how many bytes must be free so that the thread can free deleted_bytes(). 0 if
  // that does not wait for room.
  std::uint64_t needed_bytes() const { return needed_bytes_; }

  // Drops the tables whose keys all are in one range of `deleted`, and leaves the rest to the
  // thread. Call this right after a write that deletes all records in `deleted`, before any other
  // write. A database must be attached. Returns the error of DropTables(), and sets
  // `may_have_dropped` as it does. While the thread compacts, drops no tables and sets
  // `may_have_dropped` to false.
  rocksdb::Status Reclaim(absl::Span<const KeyRange> deleted, bool& may_have_dropped);
  // Leaves the deleted records in `ranges` to the thread. Drops no tables, since there may be other
  // records in `ranges`.
  void Add(absl::Span<const KeyRange> ranges);

  // Has the thread look again if it waits for room, and `free_bytes` are enough. Returns whether it
  // is at work while there are deleted records to free.
  bool IsFreeing(std::uint64_t free_bytes);
  // Waits until everything is done that can be done now. A database must be attached.
  void AwaitIdle();

 private:
  void Run();
  // Waits for work, or for room that the last work lacked. Returns false if there is none yet.
  bool AwaitWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Compacts what deleted_ has, if that pays and there is room. If not, writes the write buffers to
  // tables, if that pays and there is room. Compaction must be allowed.
  rocksdb::Status Free(rocksdb::DB& db, Disk disk, std::uint64_t spare_bytes);
  // Returns about how many bytes Compact() of `ranges` writes, at most, before it removes the
  // tables that it read. It writes at most all records that are not deleted, and those of the write
  // buffers twice. Without `ranges`, returns about how many bytes of tables the write buffers
  // become.
  std::uint64_t BytesFor(rocksdb::DB& db, const std::vector<KeyRange>& ranges);
  // Writes the write buffers to tables, and compacts the tables that have records in `ranges`.
  // Clears deleted_ if all of that succeeds. Reads the records in `ranges` before the compaction.
  // If one is damaged, compacts nothing and calls StopCompaction().
  rocksdb::Status Compact(rocksdb::DB& db, const std::vector<KeyRange>& ranges);
  // Compacts the tables that have records in `range`, unless these records take fewer bytes than
  // kTableBlockBytes.
  rocksdb::Status CompactRange(rocksdb::DB& db, const KeyRange& range);
  void StopCompaction(rocksdb::DB& db);

  rocksdb::Env& env_;
  const std::string directory_;
  const Flush flush_;
  const absl::Duration room_interval_;
  std::atomic<bool> cancelled_{false};  // Ends what the thread does.
  std::atomic<bool> has_found_damage_{false};
  std::atomic<std::uint64_t> deleted_bytes_{0};  // Of deleted_, after the thread's last work.
  std::atomic<std::uint64_t> needed_bytes_{0};   // Room that the thread's last work lacked.

  DeletedRanges deleted_{kRangesMax};  // Only the thread uses it.

  absl::Mutex compaction_mutex_;  // Held during CompactTables() and DropTables().

  absl::Mutex mutex_;
  rocksdb::DB* db_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Disk disk_ ABSL_GUARDED_BY(mutex_) = Disk::kHasRoom;
  std::uint64_t spare_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool may_compact_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<KeyRange> added_ ABSL_GUARDED_BY(mutex_);  // Deleted, and not in deleted_ yet.
  bool has_news_ ABSL_GUARDED_BY(mutex_) = false;        // The thread has to look for work.
  bool is_working_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // Declared last, because it uses the other members.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_RECLAIMER_H_
