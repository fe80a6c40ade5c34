#ifndef SOFTLOOKUP_CORE_STORAGE_OPEN_DATABASE_H_
#define SOFTLOOKUP_CORE_STORAGE_OPEN_DATABASE_H_

#include <rocksdb/db.h>
#include <rocksdb/env.h>

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

// What a database is opened for.
enum class RocksdbAccess { kWrite, kRead };

// Returns the options of a log's database. `errors` is told of errors in the background.
rocksdb::Options LogOptions(rocksdb::Env* env, const std::shared_ptr<BackgroundErrors>& errors);

// Returns whether `directory` has RocksDB's file CURRENT, the root of a database. Sets `damage` if
// CURRENT is missing but other files of a database are there.
bool HasDatabase(const std::string& directory, absl::Status& damage);

// Returns whether the disk has room for what opening the database again takes. False if the free
// bytes are unknown.
bool HasRoomToReopen(rocksdb::Env& env, const std::string& directory);

// Opens a database to write, and creates it if there is none. DATA_LOSS if the database has lost
// changes that `synced_sequence` says were synced.
absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenDatabase(rocksdb::Options options,
                                                          const std::string& directory,
                                                          const SyncedSequence& synced_sequence);

// Opens a database only to read, with the same errors. Sets `lock`, also for some errors. If it is
// not null, the caller must unlock it.
absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenDatabaseToRead(
    const rocksdb::Options& options, const std::string& directory,
    const SyncedSequence& synced_sequence, rocksdb::FileLock*& lock);

// Returns whether the database has a record of its format. DATA_LOSS if this server does not know
// the format.
absl::StatusOr<bool> ReadFormat(rocksdb::DB& db);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_OPEN_DATABASE_H_
