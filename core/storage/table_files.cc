#include "core/storage/table_files.h"

#include <rocksdb/convenience.h>
#include <rocksdb/sst_file_reader.h>

#include <algorithm>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"

namespace softlookup {
namespace {

using Table = rocksdb::LiveFileMetaData;

std::vector<Table> AllTables(rocksdb::DB& db) {
  std::vector<Table> tables;
  db.GetLiveFilesMetaData(&tables);
  return tables;
}

// Returns those of `ranges` in which `table` may have a key.
absl::Span<const KeyRange> RangesOf(const Table& table, absl::Span<const KeyRange> ranges) {
  const auto first = std::partition_point(ranges.begin(), ranges.end(), [&](const KeyRange& range) {
    return range.end <= table.smallestkey;
  });
  const auto last = std::partition_point(
      first, ranges.end(), [&](const KeyRange& range) { return range.begin <= table.largestkey; });
  return ranges.subspan(first - ranges.begin(), last - first);
}

std::unique_ptr<rocksdb::Iterator> IteratorUpTo(
    const rocksdb::Slice& end,
    absl::FunctionRef<rocksdb::Iterator*(const rocksdb::ReadOptions&)> make) {
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;
  options.iterate_upper_bound = &end;
  return std::unique_ptr<rocksdb::Iterator>(make(options));
}

// A table that is read by itself, so that no deletion of a range hides its records.
class OpenTable {
 public:
  OpenTable(const rocksdb::Options& options, const Table& table)
      : reader_(options),
        status_(reader_.Open(absl::StrCat(table.directory, "/", table.relative_filename))) {}

  // Whether compaction has replaced the table and removed its file.
  bool is_gone() const { return status_.IsPathNotFound() || status_.IsNotFound(); }

  // Calls visit() for each record in `range`, until visit() returns false. Returns the error of
  // reading.
  rocksdb::Status Visit(const KeyRange& range, absl::FunctionRef<bool()> visit) {
    if (!status_.ok()) return status_;
    const rocksdb::Slice end(range.end);
    const std::unique_ptr<rocksdb::Iterator> it = IteratorUpTo(
        end, [&](const rocksdb::ReadOptions& options) { return reader_.NewIterator(options); });
    for (it->Seek(range.begin); it->Valid() && visit(); it->Next()) {
    }
    return it->status();
  }

 private:
  rocksdb::SstFileReader reader_;
  const rocksdb::Status status_;
};

// Calls visit() for each table that may have a key in `ranges`, with the ranges in which it may.
// Leaves out tables that compaction has replaced meanwhile: compaction has read all their records.
// Stops at the first error of visit(), and returns it.
rocksdb::Status VisitTables(
    rocksdb::DB& db, absl::Span<const KeyRange> ranges,
    absl::FunctionRef<rocksdb::Status(OpenTable& table, absl::Span<const KeyRange>)> visit) {
  const rocksdb::Options options = db.GetOptions();
  for (const Table& table : AllTables(db)) {
    const absl::Span<const KeyRange> of_table = RangesOf(table, ranges);
    if (of_table.empty()) continue;
    OpenTable open(options, table);
    if (open.is_gone()) continue;
    rocksdb::Status status = visit(open, of_table);
    if (!status.ok()) return status;
  }
  return rocksdb::Status::OK();
}

std::uint64_t PropertyOf(rocksdb::DB& db, const std::string& name) {
  std::uint64_t value = 0;
  return db.GetIntProperty(name, &value) ? value : 0;
}

// Returns a key that comes before `end`, and after all records before `end`. `end` must be that of
// a KeysOfStore(). The key has the number of that store and a kind of 255, which no record has.
std::string LastKeyBefore(std::string end) {
  std::size_t zeros = 0;
  for (; !end.empty() && end.back() == '\0'; end.pop_back()) ++zeros;
  if (end.empty()) return end;
  --end.back();
  return end.append(zeros + 1, '\xff');
}

}  // namespace

std::uint64_t VersionOfTables(rocksdb::DB& db) {
  return PropertyOf(db, rocksdb::DB::Properties::kCurrentSuperVersionNumber);
}

rocksdb::Status DropTables(rocksdb::DB& db, absl::Span<const KeyRange> ranges,
                           bool& may_have_dropped) {
  std::vector<rocksdb::Slice> bounds;
  bounds.reserve(2 * ranges.size());  // RangePtr points to the elements.
  std::vector<rocksdb::RangePtr> pointers;
  for (const KeyRange& range : ranges) {
    bounds.emplace_back(range.begin);
    bounds.emplace_back(range.end);
    pointers.emplace_back(&bounds[bounds.size() - 2], &bounds.back());
  }
  // The last key of a table may be the end of a deletion, range.end itself, so the end is included.
  // No record has that key.
  const std::uint64_t version = VersionOfTables(db);
  rocksdb::Status status = rocksdb::DeleteFilesInRanges(
      &db, db.DefaultColumnFamily(), pointers.data(), pointers.size(), /*include_end=*/true);
  may_have_dropped = VersionOfTables(db) != version;
  return status;
}

bool HasRecords(rocksdb::DB& db, absl::Span<const KeyRange> ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const KeyRange& range) {
    const rocksdb::Slice end(range.end);
    const std::unique_ptr<rocksdb::Iterator> it = IteratorUpTo(
        end, [&](const rocksdb::ReadOptions& options) { return db.NewIterator(options); });
    it->Seek(range.begin);
    return it->Valid() || !it->status().ok();
  });
}

std::vector<KeyRange> RangesInTables(rocksdb::DB& db, absl::Span<const KeyRange> ranges) {
  std::vector<bool> have(ranges.size(), false);
  const auto look = [&](OpenTable& table, absl::Span<const KeyRange> of_table) {
    for (const KeyRange& range : of_table) {
      const std::size_t index = &range - ranges.data();
      if (have[index]) continue;
      bool has_record = false;
      const rocksdb::Status status = table.Visit(range, [&] {
        has_record = true;
        return false;
      });
      have[index] = has_record || !status.ok();
    }
    return rocksdb::Status::OK();
  };
  VisitTables(db, ranges, look).PermitUncheckedError();  // No look fails.
  std::vector<KeyRange> found;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (have[i]) found.push_back(ranges[i]);
  }
  return found;
}

rocksdb::Status ReadTables(rocksdb::DB& db, absl::Span<const KeyRange> ranges,
                           const std::atomic<bool>& cancelled) {
  return VisitTables(db, ranges, [&](OpenTable& table, absl::Span<const KeyRange> of_table) {
    for (const KeyRange& range : of_table) {
      rocksdb::Status status = table.Visit(range, [&] { return !cancelled; });
      if (!status.ok()) return status;
      if (cancelled) return rocksdb::Status::Incomplete();
    }
    return rocksdb::Status::OK();
  });
}

std::string LastKeyInTables(rocksdb::DB& db) {
  std::string last;
  for (const Table& table : AllTables(db)) last = std::max(last, table.largestkey);
  return last;
}

std::uint64_t BytesIn(rocksdb::DB& db, const KeyRange& range) {
  rocksdb::SizeApproximationOptions options;
  options.include_files = true;
  // RocksDB can only guess what a range takes of a write buffer, and is often far off.
  options.include_memtables = false;
  const rocksdb::Range bounds(range.begin, range.end);
  std::uint64_t bytes = 0;
  const rocksdb::Status status =
      db.GetApproximateSizes(options, db.DefaultColumnFamily(), &bounds, 1, &bytes);
  return status.ok() ? bytes : 0;
}

std::uint64_t BytesOfTables(rocksdb::DB& db) {
  return PropertyOf(db, rocksdb::DB::Properties::kLiveSstFilesSize);
}

std::uint64_t BytesOfWriteBuffers(rocksdb::DB& db) {
  return PropertyOf(db, rocksdb::DB::Properties::kCurSizeAllMemTables);
}

std::uint64_t BytesKeptOfWriteBuffers(rocksdb::DB& db, const std::atomic<bool>& cancelled) {
  constexpr std::uint64_t kUnknown = std::uint64_t{1} << 62;
  rocksdb::ReadOptions options;
  options.read_tier = rocksdb::kMemtableTier;
  std::uint64_t bytes = 0;
  const std::unique_ptr<rocksdb::Iterator> it(db.NewIterator(options));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    if (cancelled) return kUnknown;
    bytes += it->key().size() + it->value().size();
  }
  return it->status().ok() ? bytes : kUnknown;
}

bool HasFullWriteBuffers(rocksdb::DB& db) {
  return PropertyOf(db, rocksdb::DB::Properties::kNumImmutableMemTable) > 0;
}

std::uint64_t BytesToCompact(rocksdb::DB& db, absl::Span<const KeyRange> ranges) {
  // RocksDB compacts level 1 and higher ones in steps. Each step reads at most 25 tables of a level
  // and what they overlap with in the next one, and then removes what it read.
  const std::uint64_t step_bytes_max = 2 * 25 * db.GetOptions().target_file_size_base;
  std::uint64_t bytes = BytesOfWriteBuffers(db), bytes_below_max = 0;
  std::vector<std::uint64_t> bytes_below(ranges.size(), 0);
  for (const Table& table : AllTables(db)) {
    // Level 0 is compacted in one step, with the tables of level 1 that any of its tables overlaps
    // with.
    if (table.level <= 1) {
      bytes += table.size;
      continue;
    }
    for (const KeyRange& range : RangesOf(table, ranges)) {
      std::uint64_t& below = bytes_below[&range - ranges.data()];
      below += table.size;
      bytes_below_max = std::max(bytes_below_max, below);
    }
  }
  return bytes + std::min(bytes_below_max, step_bytes_max);
}

std::uint64_t BytesToCompactByItself(rocksdb::DB& db) {
  const KeyRange all{.begin = "", .end = LastKeyInTables(db) + '\0'};
  return BytesToCompact(db, {&all, 1});
}

void RemoveUnusedFiles(rocksdb::DB& db) {
  if (!db.DisableFileDeletions().ok()) return;
  db.EnableFileDeletions(/*force=*/false).PermitUncheckedError();
}

rocksdb::Status CompactTables(rocksdb::DB& db, const KeyRange& range,
                              std::atomic<bool>& cancelled) {
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  options.canceled = &cancelled;
  // CompactRange() includes both keys. If the last one were range.end, changes at that key in a
  // write buffer would make RocksDB flush by itself.
  const std::string last = LastKeyBefore(range.end);
  const rocksdb::Slice begin(range.begin), end(last);
  return db.CompactRange(options, &begin, &end);
}

}  // namespace softlookup
