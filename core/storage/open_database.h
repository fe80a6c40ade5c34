#ifndef SOFTLOOKUP_CORE_STORAGE_OPEN_DATABASE_H_
#define SOFTLOOKUP_CORE_STORAGE_OPEN_DATABASE_H_

#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/storage/background_errors.h"
#include "core/storage/synced_sequence.h"

namespace softlookup {

// These functions open the RocksDB database of a log, and find out what it may have lost
// (docs/decisions/0009-what-a-log-may-have-lost.md).

// The name of the SyncedSequence's file in the directory of the database.
inline constexpr char kSyncedName[] = "SYNCED";
// The name of the DiskReserve's file there.
inline constexpr char kReserveName[] = "RESERVE";

inline constexpr std::size_t kWriteBufferBytes = std::size_t{64} << 20;
// Maximum number of bytes of disk that opening the database again takes, after a full disk ended
// its writes. RocksDB writes what is in the write-ahead log to tables, which is up to two write
// buffers. The rest is for a new write-ahead log and manifest.
inline constexpr std::uint64_t kRoomToReopen = 2 * kWriteBufferBytes + (std::uint64_t{4} << 20);

// RocksDB reads the records of a table in pieces of about this many bytes.
inline constexpr std::size_t kTableBlockBytes = std::size_t{64} << 10;

// What a database is opened for.
enum class RocksdbAccess { kWrite, kRead };

// Returns the options of a log's database. If the database is opened to write, `env` must come from
// HideErrorsOfEmptyTables(). `errors` is told of errors in the background.
rocksdb::Options LogOptions(rocksdb::Env* env, const std::shared_ptr<BackgroundErrors>& errors);

// Returns whether `directory` has RocksDB's file CURRENT, the root of a database. Sets `status` to
// UNAVAILABLE if this process may not read the directory. Sets it to DATA_LOSS if CURRENT is
// missing but `directory` has kSyncedName or files of records. For kRead, files that only describe
// a database are enough. For kWrite they are not: an attempt to create a database may have left
// them, and a database can still be created beside them.
bool HasDatabase(const std::string& directory, RocksdbAccess access, absl::Status& status);

// Returns the free bytes of the disk that has `directory`, or 0 if they are unknown.
std::uint64_t FreeBytes(rocksdb::Env& env, const std::string& directory);

// Returns `options` for a database on a full disk. Opening it takes only some kilobytes of disk:
// the changes in the write-ahead log are read into write buffers, and are not written to tables. A
// write buffer may then be large. No file gets room beyond what is written to it, and no compaction
// begins by itself.
rocksdb::Options FullDiskOptions(rocksdb::Options options);

// Syncs the files of the write-ahead log in `directory`. No database must be open there.
rocksdb::Status SyncLogFiles(rocksdb::Env& env, const std::string& directory);

// Opens a database to write, and creates it if there is none. DATA_LOSS if the database has lost
// changes that `synced_sequence` says were synced.
absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenDatabase(rocksdb::Options options,
                                                          const std::string& directory,
                                                          const SyncedSequence& synced_sequence);

// Opens a database only to read, with the same errors. Sets `lock`, also for some errors. If `lock`
// is not null afterwards, the caller must unlock it.
absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenDatabaseToRead(
    const rocksdb::Options& options, const std::string& directory,
    const SyncedSequence& synced_sequence, rocksdb::FileLock*& lock);

// Returns whether the database has a record of its format. DATA_LOSS if this server does not know
// the format.
absl::StatusOr<bool> ReadFormat(rocksdb::DB& db);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_OPEN_DATABASE_H_
