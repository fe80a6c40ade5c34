#ifndef SOFTLOOKUP_CORE_STORAGE_RECORDS_H_
#define SOFTLOOKUP_CORE_STORAGE_RECORDS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "softlookup/store_config.h"

namespace softlookup {

// The records that a log keeps of a store, as docs/storage_format.md defines them. Parsing returns
// DATA_LOSS for what no server has written, or only a later one.

enum class RecordKind : std::uint8_t {
  kConfig = 1,
  kHead = 2,
  kBlockStart = 3,
  kLiveRows = 4,
  kRows = 5,
  kWriter = 6,
};

struct RecordKey {
  std::uint64_t store = 0;
  RecordKind kind = RecordKind::kConfig;
  std::uint64_t number = 0;  // Of the block, or the position, where the kind has one.
  std::string writer;        // kWriter only.
};

std::string EncodeKey(const RecordKey& key);
absl::StatusOr<RecordKey> ParseKey(absl::string_view bytes);

// The keys of all of a store's records are in [begin, end).
struct KeyRange {
  std::string begin;
  std::string end;
};
KeyRange KeysOfStore(std::uint64_t store);
// Those of the kind kWriter, which are its last.
KeyRange KeysOfWriters(std::uint64_t store);
KeyRange KeysOfAllStores();

// The record that says how the others are written.
std::string FormatKey();
std::string EncodeFormat();
absl::Status CheckFormat(absl::string_view value);

// The record that names a store, apart from the store's others: where those are damaged, it tells
// what they were.
struct NamedStore {
  std::uint64_t store = 0;
  std::string name;
};
std::string KeyOfName(std::uint64_t store);
KeyRange KeysOfNames();
std::string EncodeName(absl::string_view name);
absl::StatusOr<NamedStore> ParseName(absl::string_view key, absl::string_view value);

struct ConfigRecord {
  StoreConfig config;
  absl::Time create_time;
};
std::string EncodeConfig(const ConfigRecord& record);
absl::StatusOr<ConfigRecord> ParseConfig(absl::string_view value);

struct HeadRecord {
  std::uint64_t revision = 0;
  std::uint64_t row_count = 0;
};
std::string EncodeHead(const HeadRecord& record);
absl::StatusOr<HeadRecord> ParseHead(absl::string_view value);

struct BlockStartRecord {
  std::vector<double> memories;
  // Over the block before; none for the first.
  std::vector<float> bounds;
};
std::string EncodeBlockStart(const BlockStartRecord& record);
absl::StatusOr<BlockStartRecord> ParseBlockStart(absl::string_view value);

using LiveRowsRecord = std::array<std::uint64_t, 16>;
std::string EncodeLiveRows(const LiveRowsRecord& record);
absl::StatusOr<LiveRowsRecord> ParseLiveRows(absl::string_view value);

struct RowsRecord {
  std::uint32_t row_count = 0;
  absl::string_view components;                      // Float32, in the runs of the format.
  std::vector<std::uint64_t> ids;                    // None, or one a row.
  std::vector<std::vector<std::string>> row_labels;  // None, or one a row.
};
std::string EncodeRows(const RowsRecord& record);
// `row_bytes` is what a row's key and value take. `components` points into `value`.
absl::StatusOr<RowsRecord> ParseRows(absl::string_view value, std::int64_t row_bytes);

struct WriterRecord {
  std::uint64_t last_sequence = 0;
  std::uint64_t last_position = 0;
};
std::string EncodeWriter(const WriterRecord& record);
absl::StatusOr<WriterRecord> ParseWriter(absl::string_view value);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_RECORDS_H_
