#ifndef SOFTLOOKUP_CORE_STORAGE_TABLE_FILES_H_
#define SOFTLOOKUP_CORE_STORAGE_TABLE_FILES_H_

#include <rocksdb/db.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/storage/records.h"

namespace softlookup {

// The table files of a log's database. They hold all records except those that are still in write
// buffers. Where several ranges are passed, they are ordered and do not overlap. All functions are
// thread-safe.

// Drops the tables whose keys all are in one of `ranges`, without reading them. Tables of level 0
// stay. All records in `ranges` must be deleted. If their deletion is in a table of level 1 or
// higher, it may be dropped, too, and the records of other tables then appear again. So call this
// right after the deletion is written. Sets `may_have_dropped` to false if no table was dropped.
// Sets it to true if tables were dropped, or changed for another reason at the same time. Then call
// HasRecords(), and delete the records again if they have appeared. Must not be called during
// CompactTables(): an assertion of RocksDB 7.8.3 would fail.
rocksdb::Status DropTables(rocksdb::DB& db, absl::Span<const KeyRange> ranges,
                           bool& may_have_dropped);

// Returns whether one of `ranges` has a record that is not deleted, in a table or in a write
// buffer. Returns true if reading fails. May take long: RocksDB may first read every deletion of a
// range in the database, also outside of `ranges`.
bool HasRecords(rocksdb::DB& db, absl::Span<const KeyRange> ranges);

// Returns those of `ranges` in which tables have records, deleted ones included. Reads about one
// record of each. A range whose records cannot be read counts as one that has some.
std::vector<KeyRange> RangesInTables(rocksdb::DB& db, absl::Span<const KeyRange> ranges);

// Reads all records in `ranges` that tables have, deleted ones included. Corruption if one is not
// as it was written. Incomplete soon after `cancelled` is true.
rocksdb::Status ReadTables(rocksdb::DB& db, absl::Span<const KeyRange> ranges,
                           const std::atomic<bool>& cancelled);

// Returns the largest key of all tables, which may be the end of a deletion. Empty if there are no
// tables.
std::string LastKeyInTables(rocksdb::DB& db);

// Returns about how many bytes of tables the records with keys in `range` take. Counts deleted
// records, too, until compaction has taken them away.
std::uint64_t BytesIn(rocksdb::DB& db, const KeyRange& range);

// Return how many bytes all tables take, and all write buffers.
std::uint64_t BytesOfTables(rocksdb::DB& db);
std::uint64_t BytesOfWriteBuffers(rocksdb::DB& db);

// Returns about how many bytes of tables the write buffers become. Reads them, and counts only
// what is not deleted. Returns 2^62 soon after `cancelled` is true, and if reading fails.
std::uint64_t BytesKeptOfWriteBuffers(rocksdb::DB& db, const std::atomic<bool>& cancelled);

// Returns whether there are write buffers that take no more changes and are not in tables yet.
bool HasFullWriteBuffers(rocksdb::DB& db);

// Returns an upper bound on the bytes that CompactTables() writes for any one of `ranges` before it
// removes the tables that it read. Includes the bytes of all write buffers.
std::uint64_t BytesToCompact(rocksdb::DB& db, absl::Span<const KeyRange> ranges);

// Returns an upper bound on the bytes that a compaction writes, if RocksDB begins it by itself,
// before it removes the tables that it read.
std::uint64_t BytesToCompactByItself(rocksdb::DB& db);

// Returns a number that grows whenever tables are added, removed or dropped.
std::uint64_t VersionOfTables(rocksdb::DB& db);

// Removes the files that RocksDB no longer needs. RocksDB does so by itself, but maybe later.
void RemoveUnusedFiles(rocksdb::DB& db);

// Writes the tables that may have a key in `range` anew, without deleted records. Does the same for
// the write buffers if they have such a key. Incomplete soon after `cancelled` is true.
rocksdb::Status CompactTables(rocksdb::DB& db, const KeyRange& range, std::atomic<bool>& cancelled);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_TABLE_FILES_H_
