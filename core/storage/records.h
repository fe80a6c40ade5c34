#ifndef SOFTLOOKUP_CORE_STORAGE_RECORDS_H_
#define SOFTLOOKUP_CORE_STORAGE_RECORDS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "softlookup/store_config.h"

namespace softlookup {

// The records of stores in a log, as docs/storage_format.md defines them. The Parse functions
// return DATA_LOSS for bytes that do not have the form of a record of a known version. They leave
// most numbers unchecked, because CheckStoreConfig() and StoreLoader check their ranges.

enum class RecordKind : std::uint8_t {
  kConfig = 1,
  kRevision = 2,
  kBlockStart = 3,
  kLiveRows = 4,
  kRows = 5,
  kWriter = 6,
};

struct RecordKey {
  std::uint64_t store = 0;
  RecordKind kind = RecordKind::kConfig;
  // kBlockStart, kLiveRows: the number of the block in its store, from 0. kRows: the position of
  // the record's first row. Other kinds: 0.
  std::uint64_t number = 0;
  std::string writer;  // kWriter only.
};

std::string EncodeKey(const RecordKey& key);
absl::StatusOr<RecordKey> ParseKey(absl::string_view bytes);

// Returns the number of a store that `key` begins with. `key` may be that of a record, or a bound
// of KeysOfStore(), whose end begins with the next number. 0 for a key of no store, such as that of
// a name.
std::uint64_t StoreOfKey(absl::string_view key);

// The keys in [begin, end).
struct KeyRange {
  std::string begin;
  std::string end;
};
// Returns the range of all records of a store except its name.
KeyRange KeysOfStore(std::uint64_t store);
// Returns the range of a store's kWriter records, whose keys come after those of its other records.
KeyRange KeysOfWriters(std::uint64_t store);
// Returns the range of all records of all stores except their names.
KeyRange KeysOfAllStores();

// The record of the format's version. CheckFormat() returns DATA_LOSS if this server does not read
// that version. The directory of a replica has a version of its own, because a server that does not
// know of replicas must not write to it.
std::string FormatKey();
std::string EncodeFormat();
std::string EncodeFormatOfReplica();
absl::Status CheckFormat(absl::string_view value);

// The keys of what a replica of a group keeps beside the records of stores: who it is, the last
// entry that it has applied, and staged entries. core/replicated_log has the values.
std::string KeyOfReplica();
std::string KeyOfAppliedEntry();
struct EntryId {
  std::uint64_t sequence = 0;
  std::uint64_t epoch = 0;

  bool operator<(const EntryId& other) const {
    return std::tie(sequence, epoch) < std::tie(other.sequence, other.epoch);
  }
};
std::string KeyOfEntry(const EntryId& id);
absl::StatusOr<EntryId> ParseEntryKey(absl::string_view key);
KeyRange KeysOfEntries();
// Returns the range of all keys above. No entry may change what is in it.
KeyRange KeysOfReplicas();

// The record of a store's name. It is kept apart from the store's other records. If the other
// records are damaged, this record still tells which store they belong to.
struct NamedStore {
  std::uint64_t store = 0;
  std::string name;
};
std::string KeyOfName(std::uint64_t store);
KeyRange KeysOfNames();
std::string EncodeName(absl::string_view name);
absl::StatusOr<NamedStore> ParseName(absl::string_view key, absl::string_view value);

// The mark of a store whose records are still being written, such as one that is being restored.
// The write that gives the store its name deletes the mark. A number with a mark and no name is no
// store, and a start deletes its records.
std::string KeyOfUnfinished(std::uint64_t store);
KeyRange KeysOfUnfinished();
std::string EncodeUnfinished();
// Returns the number of the store. The value is not read.
absl::StatusOr<std::uint64_t> ParseUnfinishedKey(absl::string_view key);

struct ConfigRecord {
  StoreConfig config;
  absl::Time create_time;
};
std::string EncodeConfig(const ConfigRecord& record);
absl::StatusOr<ConfigRecord> ParseConfig(absl::string_view value);

// The store's newest revision, and how many rows the store has then, deleted ones included. Every
// write to the store puts this record anew.
struct RevisionRecord {
  std::uint64_t revision = 0;
  std::uint64_t row_count = 0;
};
std::string EncodeRevision(const RevisionRecord& record);
absl::StatusOr<RevisionRecord> ParseRevision(absl::string_view value);

// The record of the start of a block. It is written together with the first row of the block.
struct BlockStartRecord {
  std::vector<double> memories;  // State of all memories before the block's first row.
  std::vector<float> bounds;     // Bounds over the previous block's rows. Empty for block 0.
};
std::string EncodeBlockStart(const BlockStartRecord& record);
absl::StatusOr<BlockStartRecord> ParseBlockStart(absl::string_view value);

struct LiveRowsRecord {
  // Bit r % 64 of word r / 64 is for row r, counted from the first position of the block.
  using Mask = std::array<std::uint64_t, 16>;

  Mask live = {};  // The rows that are not deleted.
  // The rows that the block's kRows record has, if the block is compacted.
  std::optional<Mask> kept;
};
std::string EncodeLiveRows(const LiveRowsRecord& record);
absl::StatusOr<LiveRowsRecord> ParseLiveRows(absl::string_view value);

// The rows of an append, or what is left of the rows of a block that is compacted.
struct RowsRecord {
  std::uint32_t row_count = 0;
  absl::string_view components;    // The bytes that EncodeComponents() returns.
  std::vector<std::uint64_t> ids;  // Empty, or one per row with an id.
  // If some rows have an id and some have none: whether row i of the record has one. Else empty.
  std::vector<bool> has_id;
  std::vector<std::vector<std::string>> row_labels;  // Empty, or one element per row.
};
std::string EncodeRows(const RowsRecord& record);
// `row_bytes` is the size of one row's components. The result's `components` point into `value`.
absl::StatusOr<RowsRecord> ParseRows(absl::string_view value, std::int64_t row_bytes);
// Returns the ids by row, or nothing if no row has one.
std::vector<std::optional<std::uint64_t>> IdsByRow(const RowsRecord& record);
// Returns RowsRecord::row_count alone, and reads nothing behind it.
absl::StatusOr<std::uint32_t> ParseRowCount(absl::string_view value);

struct WriterRecord {
  std::uint64_t last_sequence = 0;
  std::uint64_t last_position = 0;
};
std::string EncodeWriter(const WriterRecord& record);
absl::StatusOr<WriterRecord> ParseWriter(absl::string_view value);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_RECORDS_H_
