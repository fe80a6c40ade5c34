#include "core/storage/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/escaping.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;

constexpr absl::StatusCode kDataLoss = absl::StatusCode::kDataLoss;

std::string Hex(absl::string_view bytes) { return absl::BytesToHexString(bytes); }

// The bytes of docs/storage_format.md, which directories out there have.
TEST(RecordsTest, KeysHaveTheBytesOfTheFormat) {
  EXPECT_EQ(Hex(FormatKey()), "000000000000000000");
  EXPECT_EQ(Hex(EncodeFormat()), "01000000");
  EXPECT_EQ(Hex(KeyOfName(0x0102)), "0000000000000000010000000000000102");
  EXPECT_EQ(Hex(KeyOfUnfinished(0x0102)), "0000000000000000020000000000000102");
  EXPECT_EQ(Hex(EncodeFormatOfReplica()), "02000000");
  EXPECT_EQ(Hex(KeyOfReplica()), "000000000000000003");
  EXPECT_EQ(Hex(KeyOfAppliedEntry()), "000000000000000004");
  EXPECT_EQ(Hex(KeyOfEntry({.sequence = 0x0102, .epoch = 3})),
            "00000000000000000500000000000001020000000000000003");
  EXPECT_EQ(Hex(EncodeKey({.store = 0x0102, .kind = RecordKind::kConfig})), "000000000000010201");
  EXPECT_EQ(Hex(EncodeKey({.store = 1, .kind = RecordKind::kRows, .number = 0x0a0b})),
            "0000000000000001050000000000000a0b");
  EXPECT_EQ(Hex(EncodeKey({.store = 1, .kind = RecordKind::kWriter, .writer = "w"})),
            "00000000000000010677");
}

TEST(RecordsTest, AMarkTellsItsStore) {
  const KeyRange marks = KeysOfUnfinished(), names = KeysOfNames();
  for (const std::uint64_t store :
       {std::uint64_t{1}, std::uint64_t{0x0102}, ~std::uint64_t{0} - 1}) {
    const std::string key = KeyOfUnfinished(store);
    EXPECT_TRUE(marks.begin <= key && key < marks.end) << store;
    EXPECT_TRUE(names.end <= key && key < KeysOfAllStores().begin) << store;
    EXPECT_EQ(ParseUnfinishedKey(key).value_or(0), store);
    EXPECT_EQ(StoreOfKey(key), 0u);
  }
  EXPECT_THAT(ParseUnfinishedKey(KeyOfUnfinished(1) + "x"), StatusIs(kDataLoss, "unfinished"));
}

TEST(RecordsTest, AnEntryIsFoundByItsKeyWhichIsNoStores) {
  const KeyRange entries = KeysOfEntries(), replicas = KeysOfReplicas();
  for (const EntryId& id : {EntryId{}, EntryId{.sequence = 1, .epoch = ~std::uint64_t{0}},
                            EntryId{.sequence = ~std::uint64_t{0}, .epoch = 2}}) {
    const std::string key = KeyOfEntry(id);
    EXPECT_TRUE(entries.begin <= key && key < entries.end);
    EXPECT_TRUE(replicas.begin <= key && key < replicas.end);
    const absl::StatusOr<EntryId> parsed = ParseEntryKey(key);
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(parsed->sequence, id.sequence);
    EXPECT_EQ(parsed->epoch, id.epoch);
    EXPECT_EQ(StoreOfKey(key), 0u);
  }
  EXPECT_THAT(ParseEntryKey(KeyOfEntry({}) + "x"), StatusIs(kDataLoss, "entry"));
  EXPECT_LT(KeysOfUnfinished().end, replicas.begin);
  EXPECT_EQ(replicas.end, KeysOfStore(1).begin);
}

TEST(RecordsTest, ValuesHaveTheBytesOfTheFormat) {
  EXPECT_EQ(Hex(EncodeUnfinished()), "01");
  EXPECT_EQ(Hex(EncodeName("s")),
            "01"
            "0100000073");
  EXPECT_EQ(Hex(EncodeRevision({.revision = 2, .row_count = 3})),
            "01"
            "0200000000000000"
            "0300000000000000");
  EXPECT_EQ(Hex(EncodeWriter({.last_sequence = 7, .last_position = 9})),
            "01"
            "0700000000000000"
            "0900000000000000");
  EXPECT_EQ(Hex(EncodeBlockStart({.memories = {1}, .bounds = {2, 0.5f}})),
            "01"
            "01000000"
            "000000000000f03f"
            "02000000"
            "00000040"
            "0000003f");
  EXPECT_EQ(Hex(EncodeRows({.row_count = 2,
                            .components = "abcdefgh",
                            .ids = {5, 6},
                            .row_labels = {{"x", "yz"}, {}}})),
            "01"
            "03"
            "02000000"
            "6162636465666768"
            "0500000000000000"
            "0600000000000000"
            "02"
            "0178"
            "02797a"
            "00");
  EXPECT_EQ(Hex(EncodeConfig({.config = {.name = "s", .key_dim = 2, .value_dim = 1},
                              .create_time = absl::FromUnixNanos(1)})),
            "01"
            "0100000073"
            "0200000000000000"
            "0100000000000000"
            "0100000000000000"
            "02"
            "000000000000f03f"
            "0100000000000000"
            "00000000"
            "00"
            "00000000");
}

LiveRowsRecord CompactedLiveRows() {
  LiveRowsRecord record;
  record.live[0] = 0x0102;
  record.live[15] = std::uint64_t{1} << 63;
  record.kept.emplace() = record.live;
  (*record.kept)[7] = 0xff;
  return record;
}

RowsRecord RowsOfWhichSomeHaveIds() {
  return {.row_count = 3,
          .components = "abcdefghijkl",
          .ids = {5, 6},
          .has_id = {true, false, true},
          .row_labels = {{"x"}, {}, {"yz", ""}}};
}

TEST(RecordsTest, RecordsOfACompactedBlockHaveTheBytesOfTheFormat) {
  const std::string first = "0201000000000000", last = "0000000000000080";
  const std::string live = first + std::string(14 * 16, '0') + last;
  const std::string kept =
      first + std::string(6 * 16, '0') + "ff00000000000000" + std::string(7 * 16, '0') + last;
  EXPECT_EQ(Hex(EncodeLiveRows(CompactedLiveRows())), "02" + live + kept);
  LiveRowsRecord plain = CompactedLiveRows();
  plain.kept.reset();
  EXPECT_EQ(Hex(EncodeLiveRows(plain)), "01" + live);
  EXPECT_EQ(Hex(EncodeRows(RowsOfWhichSomeHaveIds())),
            "02"
            "06"
            "03000000"
            "6162636465666768696a6b6c"
            "010001"
            "0500000000000000"
            "0600000000000000"
            "01"
            "0178"
            "00"
            "02"
            "02797a"
            "00");
}

TEST(RecordsTest, RecordsOfACompactedBlockComeBackWhole) {
  const LiveRowsRecord rows = CompactedLiveRows();
  auto live = ParseLiveRows(EncodeLiveRows(rows));
  ASSERT_THAT(live, IsOk());
  EXPECT_EQ(live->live, rows.live);
  EXPECT_EQ(live->kept, rows.kept);
  live = ParseLiveRows(EncodeLiveRows({.live = rows.live}));
  ASSERT_THAT(live, IsOk());
  EXPECT_EQ(live->live, rows.live);
  EXPECT_EQ(live->kept, std::nullopt);

  const RowsRecord record = RowsOfWhichSomeHaveIds();
  const std::string bytes = EncodeRows(record);
  const auto parsed = ParseRows(bytes, 4);
  ASSERT_THAT(parsed, IsOk());
  EXPECT_EQ(parsed->row_count, 3u);
  EXPECT_EQ(parsed->components, record.components);
  EXPECT_EQ(parsed->ids, record.ids);
  EXPECT_EQ(parsed->has_id, record.has_id);
  EXPECT_EQ(parsed->row_labels, record.row_labels);
  // A block can lose its last row.
  const std::string none = EncodeRows({});
  const auto empty = ParseRows(none, 4);
  ASSERT_THAT(empty, IsOk());
  EXPECT_EQ(empty->row_count, 0u);
  EXPECT_EQ(empty->components, "");
}

TEST(RecordsTest, DamagedRecordsOfACompactedBlockAreDataLoss) {
  const std::string values[] = {EncodeLiveRows(CompactedLiveRows()),
                                EncodeRows(RowsOfWhichSomeHaveIds()),
                                EncodeLiveRows({.live = CompactedLiveRows().live}),
                                EncodeRows({.row_count = 1, .components = "abcd", .ids = {1}})};
  const auto parse = [](std::size_t kind, absl::string_view value) {
    return kind % 2 == 0 ? ParseLiveRows(value).status() : ParseRows(value, 4).status();
  };
  for (std::size_t kind = 0; kind < 4; ++kind) {
    SCOPED_TRACE(kind);
    const std::string& value = values[kind];
    EXPECT_THAT(parse(kind, value), IsOk());
    EXPECT_THAT(parse(kind, value + "x"), StatusIs(kDataLoss, ""));
    for (std::size_t size = 0; size < value.size(); ++size) {
      EXPECT_THAT(parse(kind, absl::string_view(value).substr(0, size)), StatusIs(kDataLoss, ""))
          << "cut to " << size;
    }
    for (int version = 0; version < 256; ++version) {
      std::string other = value;
      other[0] = static_cast<char>(version);
      if (other == value) continue;
      EXPECT_THAT(parse(kind, other), StatusIs(kDataLoss, "")) << "version " << version;
    }
  }
  // Two claims about which rows have ids.
  std::string both = values[1];
  both[1] = static_cast<char>(both[1] | 1);
  EXPECT_THAT(ParseRows(both, 4), StatusIs(kDataLoss, ""));
  // A row has an id more than the record.
  std::string more = values[1];
  ASSERT_EQ(more[19], 0);
  more[19] = 1;
  EXPECT_THAT(ParseRows(more, 4), StatusIs(kDataLoss, ""));
  // More rows than bytes.
  std::string many = values[1];
  for (int i = 2; i < 6; ++i) many[i] = '\xff';
  EXPECT_THAT(ParseRows(many, 4), StatusIs(kDataLoss, ""));
}

TEST(RecordsTest, KeysOfAStoreAreARangeInTheOrderThatLoadingNeeds) {
  const KeyRange range = KeysOfStore(7);
  std::string last = range.begin;
  for (const RecordKey& key :
       {RecordKey{7, RecordKind::kConfig}, RecordKey{7, RecordKind::kRevision},
        RecordKey{7, RecordKind::kBlockStart, 0}, RecordKey{7, RecordKind::kBlockStart, 300},
        RecordKey{7, RecordKind::kLiveRows, 1}, RecordKey{7, RecordKind::kRows, 255},
        RecordKey{7, RecordKind::kRows, 256}, RecordKey{7, RecordKind::kWriter, 0, "\xff"}}) {
    const std::string bytes = EncodeKey(key);
    EXPECT_LT(last, bytes);
    EXPECT_LT(bytes, range.end);
    last = bytes;
    const auto parsed = ParseKey(bytes);
    ASSERT_THAT(parsed, IsOk());
    EXPECT_EQ(parsed->store, key.store);
    EXPECT_EQ(parsed->kind, key.kind);
    EXPECT_EQ(parsed->number, key.number);
    EXPECT_EQ(parsed->writer, key.writer);
  }
}

TEST(RecordsTest, AKeyTellsItsStore) {
  const std::uint64_t store = 0x0102;
  EXPECT_EQ(StoreOfKey(EncodeKey({.store = store, .kind = RecordKind::kConfig})), store);
  EXPECT_EQ(StoreOfKey(KeysOfStore(store).begin), store);
  EXPECT_EQ(StoreOfKey(KeysOfStore(store).end), store + 1);
  EXPECT_EQ(StoreOfKey(KeyOfName(store)), 0u);
  EXPECT_EQ(StoreOfKey(""), 0u);
}

TEST(RecordsTest, AWriterHasAName) {
  EXPECT_THAT(ParseKey(KeysOfWriters(7).begin), StatusIs(absl::StatusCode::kDataLoss, "writer"));
}

TEST(RecordsTest, AConfigurationComesBackWhole) {
  auto projection = std::make_shared<Projection>();
  *projection = {.input_dim = 3,
                 .query = {1, 2, 3, 4, 5, 6},
                 .key = {7, 8, 9, 10, 11, 12},
                 .value = {13, 14, 15}};
  const ConfigRecord record{
      .config = {.name = "acme/users",
                 .key_dim = 2,
                 .value_dim = 1,
                 .num_heads = 1,
                 .score = Score::kCosine,
                 .temperature = 0.25,
                 .memories = {{.name = "d", .kind = MemoryKind::kDecayedSum, .decay = 0.5},
                              {.name = "g", .kind = MemoryKind::kGated, .gate = {1, 2, 3}}},
                 .projection = projection,
                 .labels = {{"a", "b"}, {"", "x"}}},
      .create_time = absl::FromUnixNanos(1'700'000'000'123'456'789)};
  const auto parsed = ParseConfig(EncodeConfig(record));
  ASSERT_THAT(parsed, IsOk());
  EXPECT_EQ(EncodeConfig(*parsed), EncodeConfig(record));
  EXPECT_EQ(parsed->create_time, record.create_time);
  EXPECT_EQ(parsed->config.name, "acme/users");
  EXPECT_EQ(parsed->config.score, Score::kCosine);
  EXPECT_EQ(parsed->config.temperature, 0.25);
  ASSERT_EQ(parsed->config.memories.size(), 2u);
  EXPECT_EQ(parsed->config.memories[1].gate, record.config.memories[1].gate);
  EXPECT_EQ(parsed->config.projection->value, projection->value);
  EXPECT_EQ(parsed->config.labels, record.config.labels);
}

TEST(RecordsTest, OnlyAConfigurationOfAnotherStorageTypeSaysSo) {
  StoreConfig config{.name = "s", .key_dim = 2, .value_dim = 1, .labels = {{"a", "b"}}};
  const std::string plain = EncodeConfig({.config = config});
  EXPECT_EQ(plain[0], 1);
  for (const StorageType type : {StorageType::kBfloat16, StorageType::kInt8}) {
    config.storage_type = type;
    const std::string encoded = EncodeConfig({.config = config});
    EXPECT_EQ(encoded, "\2" + plain.substr(1) + static_cast<char>(type));
    const auto parsed = ParseConfig(encoded);
    ASSERT_THAT(parsed, IsOk());
    EXPECT_EQ(parsed->config.storage_type, type);
    EXPECT_EQ(parsed->config.labels, config.labels);
  }
}

StoreConfig ConfigWithRanges() {
  return {.name = "s",
          .key_dim = 2,
          .value_dim = 1,
          .labels = {{"a", "b"}},
          .ranges = {{.begin = 0, .nodes = {"n1"}}, {.begin = 0x0102, .nodes = {"n2", "x"}}}};
}

// Servers that do not know of ranges refuse version 3, and read the other versions.
TEST(RecordsTest, OnlyAConfigurationWithRangesSaysThem) {
  StoreConfig whole = ConfigWithRanges();
  whole.ranges.clear();
  const std::string plain = EncodeConfig({.config = whole});
  EXPECT_EQ(plain[0], 1);
  for (const StorageType type :
       {StorageType::kFloat32, StorageType::kBfloat16, StorageType::kInt8}) {
    StoreConfig config = ConfigWithRanges();
    config.storage_type = type;
    const std::string encoded = EncodeConfig({.config = config});
    EXPECT_EQ(Hex(encoded), "03" + Hex(plain.substr(1)) +
                                Hex(std::string(1, static_cast<char>(type))) +
                                "02000000"
                                "0000000000000000"
                                "01000000"
                                "020000006e31"
                                "0201000000000000"
                                "02000000"
                                "020000006e32"
                                "0100000078");
    const auto parsed = ParseConfig(encoded);
    ASSERT_THAT(parsed, IsOk());
    EXPECT_EQ(parsed->config.storage_type, type);
    EXPECT_EQ(parsed->config.ranges, config.ranges);
    EXPECT_EQ(parsed->config.labels, config.labels);
  }
  // Nobody writes a version 3 that says nothing new.
  const std::string none = "\3" + plain.substr(1) + std::string("\1\0\0\0\0", 5);
  EXPECT_THAT(ParseConfig(none), StatusIs(kDataLoss, "a configuration"));
}

TEST(RecordsTest, WhatIsCutShortOrTooLongOrOfALaterVersionIsDataLoss) {
  const std::string values[] = {
      EncodeConfig({.config = {.name = "s", .key_dim = 2, .value_dim = 1, .labels = {{"a", "b"}}}}),
      EncodeRevision({}),
      EncodeBlockStart({.memories = {1, 2}, .bounds = {3}}),
      EncodeLiveRows({}),
      EncodeRows({.row_count = 1, .components = "abcd", .ids = {1}, .row_labels = {{"x"}}}),
      EncodeWriter({}),
      EncodeConfig({.config = {.name = "s",
                               .key_dim = 2,
                               .value_dim = 1,
                               .storage_type = StorageType::kInt8,
                               .labels = {{"a", "b"}}}}),
      EncodeConfig({.config = ConfigWithRanges()}),
  };
  const auto parse = [](std::size_t kind, absl::string_view value) {
    switch (kind) {
      case 0:
      case 6:
      case 7:
        return ParseConfig(value).status();
      case 1:
        return ParseRevision(value).status();
      case 2:
        return ParseBlockStart(value).status();
      case 3:
        return ParseLiveRows(value).status();
      case 4:
        return ParseRows(value, 4).status();
      default:
        return ParseWriter(value).status();
    }
  };
  for (std::size_t kind = 0; kind < 8; ++kind) {
    const std::string& value = values[kind];
    EXPECT_THAT(parse(kind, value), IsOk());
    for (std::size_t size = 0; size < value.size(); ++size) {
      EXPECT_THAT(parse(kind, absl::string_view(value).substr(0, size)), StatusIs(kDataLoss, ""))
          << kind << " cut to " << size;
    }
    EXPECT_THAT(parse(kind, value + "x"), StatusIs(kDataLoss, "")) << kind;
    std::string later = value;
    later[0] = 4;
    EXPECT_THAT(parse(kind, later), StatusIs(kDataLoss, "version 4")) << kind;
  }
  EXPECT_THAT(ParseKey("short"), StatusIs(kDataLoss, ""));
  for (const int type : {0, 1, 2, 5, 255}) {  // A FLOAT32 store's configuration has version 1.
    std::string unknown = values[6];
    unknown.back() = static_cast<char>(type);
    EXPECT_THAT(ParseConfig(unknown), StatusIs(kDataLoss, "")) << type;
  }
  EXPECT_THAT(ParseRevision("\2" + values[1].substr(1)), StatusIs(kDataLoss, "version 2"));
  EXPECT_THAT(CheckFormat(std::string("\3\0\0\0", 4)), StatusIs(kDataLoss, "format 3"));
}

// The store's next write would be revision 0, and the check of revisions would end the server.
TEST(RecordsTest, ARevisionWithoutANextOneIsDataLoss) {
  constexpr auto kLast = std::numeric_limits<std::uint64_t>::max();
  EXPECT_THAT(ParseRevision(EncodeRevision({.revision = kLast})),
              StatusIs(kDataLoss, "a revision"));
  EXPECT_THAT(ParseRevision(EncodeRevision({.revision = kLast - 1})), IsOk());
}

// What ParseKey takes for damage is never written.
TEST(RecordsDeathTest, AWriterHasAName) {
  EXPECT_DEATH(EncodeKey({.store = 1, .kind = RecordKind::kWriter}), "the name of a writer");
  EXPECT_DEATH(EncodeKey({.store = 1, .kind = RecordKind::kConfig, .writer = "w"}),
               "the name of a writer");
}

}  // namespace
}  // namespace softlookup
