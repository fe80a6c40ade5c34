#include "core/storage/records.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/storage/coding.h"

namespace softlookup {
namespace {

constexpr std::uint32_t kFormatVersion = 1;
constexpr std::uint32_t kReplicaFormatVersion = 2;
constexpr std::uint8_t kRecordVersion = 1;
// The version of a configuration record that has a storage type, and of one that also has ranges. A
// record of a FLOAT32 store without ranges has neither, and has version 1.
constexpr std::uint8_t kStorageTypeVersion = 2;
constexpr std::uint8_t kRangesVersion = 3;
// Flags of a record of rows.
constexpr std::uint8_t kHasIds = 1;
constexpr std::uint8_t kHasLabels = 2;
constexpr std::uint8_t kSomeHaveIds = 4;
// The version of two records of a compacted block: that of its live rows, and that of its rows if
// some of these have an id and some have none.
constexpr std::uint8_t kCompactedVersion = 2;

absl::Status Damaged(absl::string_view what) {
  return MakeError(reasons::kDataLoss, absl::StrCat("a record of ", what, " cannot be read"));
}

Encoder Begin(std::uint8_t version = kRecordVersion) {
  Encoder encoder;
  encoder.Put(version);
  return encoder;
}

// Returns a decoder that has read the version and no more. DATA_LOSS if the version is missing or
// not in [1, known]. `what` names the contents of the record, for the error's message.
absl::StatusOr<Decoder> Open(absl::string_view value, absl::string_view what,
                             std::uint8_t known = kRecordVersion) {
  Decoder decoder(value);
  const std::uint8_t version = decoder.Get<std::uint8_t>();
  if (!decoder.ok()) return Damaged(what);
  if (version < kRecordVersion || version > known) {
    return MakeError(reasons::kDataLoss,
                     absl::StrCat("a record of ", what, " has version ", int{version},
                                  "; this server reads up to ", int{known}));
  }
  return decoder;
}

// Returns the version of a record that Open() has opened.
std::uint8_t VersionOf(absl::string_view value) { return static_cast<std::uint8_t>(value[0]); }

// Adds `number` to a key as big-endian bytes, which sort as the numbers do.
void PutKeyNumber(std::uint64_t number, std::string& key) {
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(number >> shift));
}

std::uint64_t KeyNumber(absl::string_view bytes) {
  std::uint64_t number = 0;
  for (int i = 0; i < 8; ++i) number = number << 8 | static_cast<std::uint8_t>(bytes[i]);
  return number;
}

bool HasNumber(RecordKind kind) {
  return kind == RecordKind::kBlockStart || kind == RecordKind::kLiveRows ||
         kind == RecordKind::kRows;
}

void PutFloats(const std::vector<float>& floats, Encoder& encoder) {
  encoder.PutAll(absl::MakeConstSpan(floats));
}

std::string KeyOfNumber(std::uint64_t store) {
  std::string key;
  PutKeyNumber(store, key);
  return key;
}

// The lowest version that can say all of `config`. So an earlier server still reads a configuration
// that has nothing new.
std::uint8_t VersionOf(const StoreConfig& config) {
  if (!config.ranges.empty()) return kRangesVersion;
  return config.storage_type == StorageType::kFloat32 ? kRecordVersion : kStorageTypeVersion;
}

void PutRanges(const std::vector<StoreRange>& ranges, Encoder& encoder) {
  encoder.Put(static_cast<std::uint32_t>(ranges.size()));
  for (const StoreRange& range : ranges) {
    encoder.Put(range.begin);
    encoder.Put(static_cast<std::uint32_t>(range.nodes.size()));
    for (const std::string& node : range.nodes) encoder.PutString(node);
  }
}

std::vector<StoreRange> GetRanges(Decoder& decoder) {
  std::vector<StoreRange> ranges;
  for (std::uint32_t left = decoder.Get<std::uint32_t>(); left > 0 && decoder.ok(); --left) {
    StoreRange& range = ranges.emplace_back();
    range.begin = decoder.Get<std::uint64_t>();
    for (std::uint32_t nodes = decoder.Get<std::uint32_t>(); nodes > 0 && decoder.ok(); --nodes) {
      range.nodes.emplace_back(decoder.GetString());
    }
  }
  return ranges;
}

// Whether a configuration record of version `version` can say that `type` is the storage type.
bool IsStorageTypeOf(std::uint8_t version, StorageType type) {
  return type == StorageType::kBfloat16 || type == StorageType::kInt8 ||
         (type == StorageType::kFloat32 && version == kRangesVersion);
}

}  // namespace

std::string EncodeKey(const RecordKey& key) {
  // ParseKey() refuses keys that break these rules.
  SOFTLOOKUP_CHECK(key.kind >= RecordKind::kConfig && key.kind <= RecordKind::kWriter);
  SOFTLOOKUP_CHECK((key.kind == RecordKind::kWriter) == !key.writer.empty())
      << "the name of a writer: \"" << key.writer << "\"";
  std::string bytes = KeyOfNumber(key.store);
  bytes.push_back(static_cast<char>(key.kind));
  if (HasNumber(key.kind)) PutKeyNumber(key.number, bytes);
  bytes += key.writer;
  return bytes;
}

absl::StatusOr<RecordKey> ParseKey(absl::string_view bytes) {
  if (bytes.size() < 9) return Damaged("unknown kind");
  RecordKey key{.store = KeyNumber(bytes), .kind = static_cast<RecordKind>(bytes[8])};
  if (key.kind < RecordKind::kConfig || key.kind > RecordKind::kWriter) {
    return Damaged("unknown kind");
  }
  bytes.remove_prefix(9);
  if (HasNumber(key.kind)) {
    if (bytes.size() != 8) return Damaged("unknown kind");
    key.number = KeyNumber(bytes);
  } else if (key.kind == RecordKind::kWriter) {
    // If a writer had an empty name, appends without a writer would be taken for its duplicates.
    if (bytes.empty()) return Damaged("a writer");
    key.writer = std::string(bytes);
  } else if (!bytes.empty()) {
    return Damaged("unknown kind");
  }
  return key;
}

std::uint64_t StoreOfKey(absl::string_view key) { return key.size() < 8 ? 0 : KeyNumber(key); }

KeyRange KeysOfStore(std::uint64_t store) {
  return {.begin = KeyOfNumber(store), .end = KeyOfNumber(store + 1)};
}

KeyRange KeysOfWriters(std::uint64_t store) {
  return {.begin = KeyOfNumber(store) + static_cast<char>(RecordKind::kWriter),
          .end = KeyOfNumber(store + 1)};
}

KeyRange KeysOfAllStores() {
  return {.begin = KeyOfNumber(1), .end = KeyOfNumber(~std::uint64_t{0})};
}

std::string FormatKey() { return KeyOfNumber(0) + '\0'; }

std::string EncodeFormat() {
  Encoder encoder;
  encoder.Put(kFormatVersion);
  return encoder.Take();
}

std::string EncodeFormatOfReplica() {
  Encoder encoder;
  encoder.Put(kReplicaFormatVersion);
  return encoder.Take();
}

absl::Status CheckFormat(absl::string_view value) {
  Decoder decoder(value);
  const std::uint32_t version = decoder.Get<std::uint32_t>();
  if (!decoder.at_end()) return Damaged("the format");
  if (version < kFormatVersion || version > kReplicaFormatVersion) {
    return MakeError(reasons::kDataLoss,
                     absl::StrCat("the data directory has format ", version,
                                  "; this server reads up to ", kReplicaFormatVersion));
  }
  return absl::OkStatus();
}

std::string KeyOfReplica() { return KeyOfNumber(0) + '\3'; }

std::string KeyOfAppliedEntry() { return KeyOfNumber(0) + '\4'; }

std::string KeyOfEntry(const EntryId& id) {
  return absl::StrCat(KeyOfNumber(0), "\5", KeyOfNumber(id.sequence), KeyOfNumber(id.epoch));
}

absl::StatusOr<EntryId> ParseEntryKey(absl::string_view key) {
  if (key.size() != KeyOfEntry({}).size()) return Damaged("an entry");
  return EntryId{.sequence = KeyNumber(key.substr(key.size() - 16)),
                 .epoch = KeyNumber(key.substr(key.size() - 8))};
}

KeyRange KeysOfEntries() { return {.begin = KeyOfNumber(0) + '\5', .end = KeyOfNumber(0) + '\6'}; }

KeyRange KeysOfReplicas() { return {.begin = KeyOfReplica(), .end = KeyOfNumber(1)}; }

std::string KeyOfName(std::uint64_t store) {
  return absl::StrCat(KeyOfNumber(0), "\1", KeyOfNumber(store));
}

KeyRange KeysOfNames() { return {.begin = KeyOfName(1), .end = KeyOfName(~std::uint64_t{0})}; }

std::string EncodeName(absl::string_view name) {
  Encoder encoder = Begin();
  encoder.PutString(name);
  return encoder.Take();
}

absl::StatusOr<NamedStore> ParseName(absl::string_view key, absl::string_view value) {
  constexpr absl::string_view kWhat = "a store's name";
  SOFTLOOKUP_ASSIGN_OR_RETURN(Decoder decoder, Open(value, kWhat));
  NamedStore store{.name = std::string(decoder.GetString())};
  if (!decoder.at_end() || key.size() != KeyOfName(1).size()) return Damaged(kWhat);
  store.store = KeyNumber(key.substr(key.size() - 8));
  return store;
}

std::string KeyOfUnfinished(std::uint64_t store) {
  return absl::StrCat(KeyOfNumber(0), "\2", KeyOfNumber(store));
}

KeyRange KeysOfUnfinished() {
  return {.begin = KeyOfUnfinished(1), .end = KeyOfUnfinished(~std::uint64_t{0})};
}

std::string EncodeUnfinished() { return Begin().Take(); }

absl::StatusOr<std::uint64_t> ParseUnfinishedKey(absl::string_view key) {
  if (key.size() != KeyOfUnfinished(1).size()) return Damaged("an unfinished store");
  return KeyNumber(key.substr(key.size() - 8));
}

std::string EncodeConfig(const ConfigRecord& record) {
  const StoreConfig& config = record.config;
  const std::uint8_t version = VersionOf(config);
  Encoder encoder = Begin(version);
  encoder.PutString(config.name);
  encoder.Put(config.key_dim);
  encoder.Put(config.value_dim);
  encoder.Put(config.num_heads);
  encoder.Put(static_cast<std::uint8_t>(config.score));
  encoder.Put(config.temperature);
  encoder.Put(static_cast<std::int64_t>(absl::ToUnixNanos(record.create_time)));
  encoder.Put(static_cast<std::uint32_t>(config.memories.size()));
  for (const MemorySpec& memory : config.memories) {
    encoder.PutString(memory.name);
    encoder.Put(static_cast<std::uint8_t>(memory.kind));
    encoder.Put(memory.decay);
    encoder.Put(static_cast<std::uint32_t>(memory.gate.size()));
    PutFloats(memory.gate, encoder);
  }
  encoder.Put(static_cast<std::uint8_t>(config.projection != nullptr));
  if (config.projection != nullptr) {
    encoder.Put(config.projection->input_dim);
    PutFloats(config.projection->query, encoder);
    PutFloats(config.projection->key, encoder);
    PutFloats(config.projection->value, encoder);
  }
  encoder.Put(static_cast<std::uint32_t>(config.labels.size()));
  for (const auto& [key, value] : config.labels) {
    encoder.PutString(key);
    encoder.PutString(value);
  }
  if (version >= kStorageTypeVersion) {
    encoder.Put(static_cast<std::uint8_t>(config.storage_type));
  }
  if (version >= kRangesVersion) PutRanges(config.ranges, encoder);
  return encoder.Take();
}

absl::StatusOr<ConfigRecord> ParseConfig(absl::string_view value) {
  constexpr absl::string_view kWhat = "a configuration";
  SOFTLOOKUP_ASSIGN_OR_RETURN(Decoder decoder, Open(value, kWhat, kRangesVersion));
  ConfigRecord record;
  StoreConfig& config = record.config;
  config.name = std::string(decoder.GetString());
  config.key_dim = decoder.Get<std::int64_t>();
  config.value_dim = decoder.Get<std::int64_t>();
  config.num_heads = decoder.Get<std::int64_t>();
  config.score = static_cast<Score>(decoder.Get<std::uint8_t>());
  config.temperature = decoder.Get<double>();
  record.create_time = absl::FromUnixNanos(decoder.Get<std::int64_t>());
  for (std::uint32_t left = decoder.Get<std::uint32_t>(); left > 0 && decoder.ok(); --left) {
    MemorySpec& memory = config.memories.emplace_back();
    memory.name = std::string(decoder.GetString());
    memory.kind = static_cast<MemoryKind>(decoder.Get<std::uint8_t>());
    memory.decay = decoder.Get<double>();
    memory.gate = decoder.GetAll<float>(decoder.Get<std::uint32_t>());
  }
  if (decoder.Get<std::uint8_t>() != 0) {
    auto projection = std::make_shared<Projection>();
    projection->input_dim = decoder.Get<std::int64_t>();
    const auto input_dim = static_cast<std::uint64_t>(projection->input_dim);
    const auto key_dim = static_cast<std::uint64_t>(config.key_dim);
    projection->query = decoder.GetAll<float>(key_dim * input_dim);
    projection->key = decoder.GetAll<float>(key_dim * input_dim);
    projection->value =
        decoder.GetAll<float>(static_cast<std::uint64_t>(config.value_dim) * input_dim);
    config.projection = std::move(projection);
  }
  for (std::uint32_t left = decoder.Get<std::uint32_t>(); left > 0 && decoder.ok(); --left) {
    std::string key(decoder.GetString());
    config.labels[std::move(key)] = std::string(decoder.GetString());
  }
  const std::uint8_t version = VersionOf(value);
  if (version >= kStorageTypeVersion) {
    config.storage_type = static_cast<StorageType>(decoder.Get<std::uint8_t>());
    if (!IsStorageTypeOf(version, config.storage_type)) return Damaged(kWhat);
  }
  if (version >= kRangesVersion) {
    config.ranges = GetRanges(decoder);
    if (config.ranges.empty()) return Damaged(kWhat);
  }
  if (!decoder.at_end()) return Damaged(kWhat);
  return record;
}

std::string EncodeRevision(const RevisionRecord& record) {
  Encoder encoder = Begin();
  encoder.Put(record.revision);
  encoder.Put(record.row_count);
  return encoder.Take();
}

absl::StatusOr<RevisionRecord> ParseRevision(absl::string_view value) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(Decoder decoder, Open(value, "a revision"));
  RevisionRecord record;
  record.revision = decoder.Get<std::uint64_t>();
  record.row_count = decoder.Get<std::uint64_t>();
  if (!decoder.at_end()) return Damaged("a revision");
  // No store has the largest number as its revision: the next write would make revision 0.
  if (record.revision == std::numeric_limits<std::uint64_t>::max()) return Damaged("a revision");
  return record;
}

std::string EncodeBlockStart(const BlockStartRecord& record) {
  Encoder encoder = Begin();
  encoder.Put(static_cast<std::uint32_t>(record.memories.size()));
  encoder.PutAll(absl::MakeConstSpan(record.memories));
  encoder.Put(static_cast<std::uint32_t>(record.bounds.size()));
  PutFloats(record.bounds, encoder);
  return encoder.Take();
}

absl::StatusOr<BlockStartRecord> ParseBlockStart(absl::string_view value) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(Decoder decoder, Open(value, "a block's start"));
  BlockStartRecord record;
  record.memories = decoder.GetAll<double>(decoder.Get<std::uint32_t>());
  record.bounds = decoder.GetAll<float>(decoder.Get<std::uint32_t>());
  if (!decoder.at_end()) return Damaged("a block's start");
  return record;
}

std::string EncodeLiveRows(const LiveRowsRecord& record) {
  Encoder encoder = Begin(record.kept ? kCompactedVersion : kRecordVersion);
  encoder.PutAll(absl::MakeConstSpan(record.live));
  if (record.kept) encoder.PutAll(absl::MakeConstSpan(*record.kept));
  return encoder.Take();
}

absl::StatusOr<LiveRowsRecord> ParseLiveRows(absl::string_view value) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(Decoder decoder, Open(value, "live rows", kCompactedVersion));
  LiveRowsRecord record;
  for (std::uint64_t& word : record.live) word = decoder.Get<std::uint64_t>();
  if (VersionOf(value) == kCompactedVersion) {
    for (std::uint64_t& word : record.kept.emplace()) word = decoder.Get<std::uint64_t>();
  }
  if (!decoder.at_end()) return Damaged("live rows");
  return record;
}

std::string EncodeRows(const RowsRecord& record) {
  const bool some_have_ids = !record.has_id.empty();
  Encoder encoder = Begin(some_have_ids ? kCompactedVersion : kRecordVersion);
  encoder.Put(static_cast<std::uint8_t>((some_have_ids        ? kSomeHaveIds
                                         : record.ids.empty() ? 0
                                                              : kHasIds) |
                                        (record.row_labels.empty() ? 0 : kHasLabels)));
  encoder.Put(record.row_count);
  encoder.PutBytes(record.components);
  for (const bool has_id : record.has_id) encoder.Put(static_cast<std::uint8_t>(has_id));
  encoder.PutAll(absl::MakeConstSpan(record.ids));
  for (const std::vector<std::string>& labels : record.row_labels) {
    encoder.Put(static_cast<std::uint8_t>(labels.size()));
    for (const std::string& label : labels) {
      encoder.Put(static_cast<std::uint8_t>(label.size()));
      encoder.PutBytes(label);
    }
  }
  return encoder.Take();
}

std::vector<std::optional<std::uint64_t>> IdsByRow(const RowsRecord& record) {
  std::vector<std::optional<std::uint64_t>> ids;
  if (record.ids.empty()) return ids;
  auto next = record.ids.begin();
  for (std::uint32_t row = 0; row < record.row_count; ++row) {
    const bool has_id = record.has_id.empty() || record.has_id[row];
    ids.push_back(has_id ? std::optional<std::uint64_t>(*next++) : std::nullopt);
  }
  return ids;
}

absl::StatusOr<std::uint32_t> ParseRowCount(absl::string_view value) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(Decoder decoder, Open(value, "rows", kCompactedVersion));
  decoder.Get<std::uint8_t>();  // Flags.
  const auto count = decoder.Get<std::uint32_t>();
  if (!decoder.ok()) return Damaged("rows");
  return count;
}

// Returns whether a record of rows of this version can have these flags.
bool AreFlagsOfRows(std::uint8_t version, std::uint8_t flags) {
  const bool some_have_ids = (flags & kSomeHaveIds) != 0;
  return (flags & ~(kHasIds | kHasLabels | kSomeHaveIds)) == 0 &&
         some_have_ids == (version == kCompactedVersion) &&
         !(some_have_ids && (flags & kHasIds) != 0);
}

absl::StatusOr<RowsRecord> ParseRows(absl::string_view value, std::int64_t row_bytes) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(Decoder decoder, Open(value, "rows", kCompactedVersion));
  RowsRecord record;
  const std::uint8_t flags = decoder.Get<std::uint8_t>();
  record.row_count = decoder.Get<std::uint32_t>();
  record.components =
      decoder.GetBytes(std::uint64_t{record.row_count} * static_cast<std::uint64_t>(row_bytes));
  if (!decoder.ok() || !AreFlagsOfRows(VersionOf(value), flags)) return Damaged("rows");
  if ((flags & kSomeHaveIds) != 0) {
    record.has_id.resize(record.row_count);
    for (std::uint32_t row = 0; row < record.row_count; ++row) {
      const auto has_id = decoder.Get<std::uint8_t>();
      if (has_id > 1) return Damaged("rows");
      record.has_id[row] = has_id == 1;
    }
    record.ids = decoder.GetAll<std::uint64_t>(
        static_cast<std::uint32_t>(std::ranges::count(record.has_id, true)));
  }
  if ((flags & kHasIds) != 0) record.ids = decoder.GetAll<std::uint64_t>(record.row_count);
  if ((flags & kHasLabels) != 0) {
    record.row_labels.resize(record.row_count);
    for (std::vector<std::string>& labels : record.row_labels) {
      for (int left = decoder.Get<std::uint8_t>(); left > 0; --left) {
        labels.emplace_back(decoder.GetBytes(decoder.Get<std::uint8_t>()));
      }
    }
  }
  if (!decoder.at_end()) return Damaged("rows");
  return record;
}

std::string EncodeWriter(const WriterRecord& record) {
  Encoder encoder = Begin();
  encoder.Put(record.last_sequence);
  encoder.Put(record.last_position);
  return encoder.Take();
}

absl::StatusOr<WriterRecord> ParseWriter(absl::string_view value) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(Decoder decoder, Open(value, "a writer"));
  WriterRecord record;
  record.last_sequence = decoder.Get<std::uint64_t>();
  record.last_position = decoder.Get<std::uint64_t>();
  if (!decoder.at_end()) return Damaged("a writer");
  return record;
}

}  // namespace softlookup
