// Directories that earlier versions have written, tests/golden/storage/v*: this one must open them
// and find what was written, which is always the history below. To add a version's:
//   SOFTLOOKUP_WRITE_GOLDEN=tests/golden/storage/v2 build/release/tests/engine_test
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/engine/open_on_log.h"
#include "core/storage/commit_log.h"
#include "softlookup/engine.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup {
namespace {

using ::softlookup::testing::AppendAndWait;
using ::softlookup::testing::IsOk;
using ::softlookup::testing::TemporaryDirectory;
using ::testing::DoubleNear;
using ::testing::Pointwise;

namespace fs = std::filesystem;

// The history. Store "rows" gets kRows rows of kKeyDim and kValueDim, so three blocks of 1,024, in
// appends of 1 to 200 rows; the engine is closed halfway. Row p has id kFirstId + p, and every
// tenth has labels, but the last replaces row kReplaced; in the end, rows [kDeletedBegin,
// kDeletedEnd) are deleted. Store "settings" has all that a configuration can hold, and no rows.
// Store "deleted" is. From v2 on, stores of kNarrow have their first kNarrowRows rows. From v3 on,
// store "compacted" has the same rows as "rows" had when they were appended, those from kWithIds
// on without ids. Of its first block, one row in kKeptEvery is left, and the block is compacted.
// From v4 on, store "ranges" has the ranges of Ranges(), and no rows.
constexpr int kVersion = 4;
constexpr std::uint64_t kRows = 2'100, kHalf = 1'050;
constexpr std::int64_t kKeyDim = 4, kValueDim = 2;
constexpr std::uint64_t kFirstId = 1'000'000'000'000;
constexpr std::uint64_t kReplaced = 500, kDeletedBegin = 1'000, kDeletedEnd = 1'040;
constexpr double kDecay = 0.75;
constexpr std::uint64_t kNarrowRows = 39;
constexpr std::uint64_t kBlockRows = 1'024, kWithIds = 700, kKeptEvery = 64;
const std::pair<const char*, StorageType> kNarrow[] = {{"bfloat16", StorageType::kBfloat16},
                                                       {"int8", StorageType::kInt8}};

// Multiples of 1/32 below 1, so that sums of them are exact, whatever adds them.
float Component(std::uint64_t row, std::int64_t column) {
  return static_cast<float>((row * 7 + static_cast<std::uint64_t>(column) * 13) % 63) / 32.0f - 1;
}
float KeyOf(std::uint64_t row, std::int64_t column) { return Component(row, column); }
float ValueOf(std::uint64_t row, std::int64_t column) { return Component(row, kKeyDim + column); }

std::vector<std::string> LabelsOf(std::uint64_t row) {
  if (row % 10 != 0) return {};
  return {"ten", absl::StrCat("row ", row)};
}

StoreConfig RowsConfig() {
  return {.name = "rows",
          .key_dim = kKeyDim,
          .value_dim = kValueDim,
          .score = Score::kDot,
          .temperature = 0.5,
          .memories = {{.name = "sum", .kind = MemoryKind::kDecayedSum, .decay = kDecay},
                       {.name = "decayed", .kind = MemoryKind::kDecayedAverage, .decay = kDecay},
                       // sigmoid(0) is 1/2.
                       {.name = "gated", .kind = MemoryKind::kGated, .gate = {0, 0, 0, 0, 0}}}};
}

StoreConfig SettingsConfig() {
  return {
      .name = "settings",
      .key_dim = 4,
      .value_dim = 2,
      .num_heads = 2,
      .score = Score::kCosine,
      .temperature = 0.25,
      .memories = {{.name = "gate",
                    .kind = MemoryKind::kGatedAverage,
                    .gate = {0.5f, -1, 2, -3, 4.25f}}},
      .projection = std::make_shared<const Projection>(Projection{
          .input_dim = 1, .query = {1, 2, 3, 4}, .key = {-1, -2, -3, -4}, .value = {0.5f, 0.25f}}),
      .labels = {{"kind", "golden"}, {"owner", ""}}};
}

std::vector<StoreRange> Ranges() {
  return {{.begin = 0, .nodes = {"n1"}},
          {.begin = 8 * kBlockRows, .nodes = {"n2", "n3"}},
          {.begin = std::uint64_t{1} << 40, .nodes = {"a.node-of_64"}}};
}

class Rows {
 public:
  Rows(std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t row = begin; row < end; ++row) {
      for (std::int64_t i = 0; i < kKeyDim; ++i) keys_.push_back(KeyOf(row, i));
      for (std::int64_t i = 0; i < kValueDim; ++i) values_.push_back(ValueOf(row, i));
      ids_.push_back(kFirstId + row);
      labels_.push_back(LabelsOf(row));
    }
  }

  // `sequence` is the writer's.
  AppendRequest Request(std::uint64_t sequence) const {
    const auto rows = static_cast<std::int64_t>(ids_.size());
    return {.store = "rows",
            .keys = {.data = keys_.data(), .rows = rows, .cols = kKeyDim},
            .values = {.data = values_.data(), .rows = rows, .cols = kValueDim},
            .ids = ids_,
            .on_conflict = OnConflict::kReplace,
            .row_labels = labels_,
            .writer = "writer",
            .sequence = sequence};
  }

 private:
  std::vector<float> keys_, values_;
  std::vector<std::uint64_t> ids_;
  std::vector<std::vector<std::string>> labels_;
};

// Appends the rows [begin, end). The sequence of an append is where its rows end.
void AppendRows(Engine& engine, std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t count = 1; begin < end; count = count * 3 % 200) {
    const std::uint64_t next = std::min(begin + count, end);
    ASSERT_THAT(AppendAndWait(engine, Rows(begin, next).Request(next)), IsOk());
    begin = next;
  }
}

std::unique_ptr<Engine> Open(const std::string& directory) {
  auto engine = Engine::Open({.thread_count = 2}, directory,
                             [](const absl::Status& damage) { ADD_FAILURE() << damage; });
  EXPECT_THAT(engine, IsOk());
  return engine.ok() ? *std::move(engine) : nullptr;
}

// Makes the store "compacted".
void WriteCompacted(Engine& engine) {
  StoreConfig config = RowsConfig();
  config.name = "compacted";
  ASSERT_THAT(engine.CreateStore(config), IsOk());
  for (const auto& [begin, end] : {std::pair(std::uint64_t{0}, kWithIds), {kWithIds, kRows}}) {
    const Rows rows(begin, end);
    AppendRequest request = rows.Request(end);
    request.store = "compacted";
    if (begin == kWithIds) request.ids = {};
    ASSERT_THAT(AppendAndWait(engine, request), IsOk());
  }
  for (std::uint64_t kept = 0; kept < kBlockRows; kept += kKeptEvery) {
    RowFilter filter;
    filter.begin = kept + 1;
    filter.end = kept + kKeptEvery;
    ASSERT_THAT(engine.DeleteRows("compacted", filter), IsOk());
  }
  const auto compacted =
      engine.CompactStore({.store = "compacted", .end_memories = true}, CancelToken());
  ASSERT_THAT(compacted, IsOk());
  EXPECT_EQ(compacted->dropped_rows, kBlockRows - kBlockRows / kKeptEvery);
}

// Leaves in `killed` what a process that is killed would: half of it in tables, half in the
// write-ahead log.
void WriteHistory(const std::string& directory, const std::string& killed) {
  auto engine = Open(directory);
  ASSERT_NE(engine, nullptr);
  StoreConfig deleted = RowsConfig();
  deleted.name = "deleted";
  ASSERT_THAT(engine->CreateStore(deleted), IsOk());
  ASSERT_THAT(engine->CreateStore(RowsConfig()), IsOk());
  AppendRows(*engine, 0, kHalf);
  engine = nullptr;
  absl::StatusOr<std::unique_ptr<CommitLog>> opened = OpenCommitLog(directory);
  ASSERT_THAT(opened, IsOk());
  CommitLog& log = **opened;
  engine = *OpenOnLog({.thread_count = 2}, *std::move(opened),
                      [](const absl::Status& damage) { ADD_FAILURE() << damage; });
  ASSERT_THAT(engine->DeleteStore("deleted"), IsOk());
  ASSERT_THAT(engine->CreateStore(SettingsConfig()), IsOk());
  AppendRows(*engine, kHalf, kRows - 1);
  // The last row takes the place of another one.
  Rows last(kRows - 1, kRows);
  const std::uint64_t replaced_id = kFirstId + kReplaced;
  AppendRequest replacing = last.Request(kRows);
  replacing.ids = absl::MakeConstSpan(&replaced_id, 1);
  ASSERT_THAT(AppendAndWait(*engine, replacing), IsOk());
  for (const auto& [name, type] : kNarrow) {
    StoreConfig config = RowsConfig();
    config.name = name;
    config.storage_type = type;
    ASSERT_THAT(engine->CreateStore(config), IsOk());
    const Rows rows(0, kNarrowRows);
    AppendRequest request = rows.Request(kNarrowRows);
    request.store = name;
    ASSERT_THAT(AppendAndWait(*engine, request), IsOk());
  }
  RowFilter filter;
  filter.begin = kDeletedBegin;
  filter.end = kDeletedEnd;
  ASSERT_THAT(engine->DeleteRows("rows", filter), IsOk());
  WriteCompacted(*engine);
  StoreConfig with_ranges = RowsConfig();
  with_ranges.name = "ranges";
  ASSERT_THAT(engine->CreateStore(with_ranges), IsOk());
  ASSERT_THAT(engine->SetRanges("ranges", Ranges()), IsOk());
  log.AwaitReclaimed();  // Else files could go while they are copied.
  fs::copy(directory, killed, fs::copy_options::recursive);
}

bool IsLive(std::uint64_t row) {
  return row != kReplaced && (row < kDeletedBegin || row >= kDeletedEnd);
}

void CheckRows(Engine& engine) {
  const auto reader = engine.ReadRows("rows", {});
  ASSERT_THAT(reader, IsOk());
  for (std::uint64_t position = 0; position < kRows; ++position) {
    if (!IsLive(position)) continue;
    const std::vector<Row> rows = (*reader)->Next(1);
    ASSERT_EQ(rows.size(), 1u);
    const Row& row = rows[0];
    ASSERT_EQ(row.position, position);
    ASSERT_EQ(row.id, kFirstId + (position == kRows - 1 ? kReplaced : position));
    ASSERT_EQ(row.labels, LabelsOf(position));
    for (std::int64_t i = 0; i < kKeyDim; ++i) ASSERT_EQ(row.key[i], KeyOf(position, i));
    for (std::int64_t i = 0; i < kValueDim; ++i) ASSERT_EQ(row.value[i], ValueOf(position, i));
  }
  EXPECT_TRUE((*reader)->Next(1).empty());
}

// BFLOAT16 keeps these rows as they are, INT8 to half of a scale.
void CheckNarrowRows(Engine& engine) {
  for (const auto& [name, type] : kNarrow) {
    const auto store = engine.GetStore(name);
    ASSERT_THAT(store, IsOk());
    EXPECT_EQ(store->config.storage_type, type);
    const auto reader = engine.ReadRows(name, {});
    ASSERT_THAT(reader, IsOk());
    const std::vector<Row> rows = (*reader)->Next(kNarrowRows + 1);
    ASSERT_EQ(rows.size(), kNarrowRows);
    const double error = type == StorageType::kBfloat16 ? 0 : 1.0001 / 254;
    for (std::uint64_t row = 0; row < kNarrowRows; ++row) {
      for (std::int64_t i = 0; i < kKeyDim; ++i) {
        ASSERT_NEAR(rows[row].key[i], KeyOf(row, i), error);
      }
      for (std::int64_t i = 0; i < kValueDim; ++i) {
        ASSERT_NEAR(rows[row].value[i], ValueOf(row, i), error);
      }
    }
  }
}

// A memory of the rows before `end` that keeps `keep` of itself at each.
MemoryValue Forgetting(std::uint64_t end, double keep) {
  MemoryValue memory{.key = std::vector<double>(kKeyDim), .value = std::vector<double>(kValueDim)};
  for (std::uint64_t row = 0; row < end; ++row) {
    for (std::int64_t i = 0; i < kKeyDim; ++i) {
      memory.key[i] = keep * memory.key[i] + KeyOf(row, i);
    }
    for (std::int64_t i = 0; i < kValueDim; ++i) {
      memory.value[i] = keep * memory.value[i] + ValueOf(row, i);
    }
    memory.weight = keep * memory.weight + 1;
  }
  return memory;
}

MemoryValue Divided(MemoryValue memory) {
  for (double& component : memory.key) component /= memory.weight;
  for (double& component : memory.value) component /= memory.weight;
  return memory;
}

void CheckMemory(Engine& engine, const std::string& name, std::uint64_t end,
                 const MemoryValue& expected, absl::string_view store = "rows") {
  SCOPED_TRACE(absl::StrCat(name, " of ", store, " as of ", end));
  const auto state = engine.GetMemory(store, name, std::nullopt, end);
  ASSERT_THAT(state, IsOk());
  constexpr double kError = 1e-12;
  EXPECT_THAT(state->memory.key, Pointwise(DoubleNear(kError), expected.key));
  EXPECT_THAT(state->memory.value, Pointwise(DoubleNear(kError), expected.value));
  EXPECT_THAT(state->memory.weight, DoubleNear(expected.weight, kError));
}

void CheckCompacted(Engine& engine) {
  const auto reader = engine.ReadRows("compacted", {});
  ASSERT_THAT(reader, IsOk());
  for (std::uint64_t position = 0; position < kRows; ++position) {
    if (position < kBlockRows && position % kKeptEvery != 0) continue;
    const std::vector<Row> rows = (*reader)->Next(1);
    ASSERT_EQ(rows.size(), 1u);
    const Row& row = rows[0];
    ASSERT_EQ(row.position, position);
    ASSERT_EQ(row.id.has_value(), position < kWithIds);
    if (row.id) {
      ASSERT_EQ(row.id, kFirstId + position);
    }
    ASSERT_EQ(row.labels, LabelsOf(position));
    for (std::int64_t i = 0; i < kKeyDim; ++i) ASSERT_EQ(row.key[i], KeyOf(position, i));
    for (std::int64_t i = 0; i < kValueDim; ++i) ASSERT_EQ(row.value[i], ValueOf(position, i));
  }
  EXPECT_TRUE((*reader)->Next(1).empty());
  for (const std::uint64_t end : {kBlockRows, kRows}) {
    CheckMemory(engine, "sum", end, Forgetting(end, kDecay), "compacted");
  }
  EXPECT_EQ(ReasonOf(engine.GetMemory("compacted", "sum", std::nullopt, 7).status()),
            "ROWS_COMPACTED");
}

void CheckSettings(const StoreConfig& config) {
  const StoreConfig expected = SettingsConfig();
  EXPECT_EQ(config.key_dim, expected.key_dim);
  EXPECT_EQ(config.value_dim, expected.value_dim);
  EXPECT_EQ(config.num_heads, expected.num_heads);
  EXPECT_EQ(config.score, expected.score);
  EXPECT_EQ(config.temperature, expected.temperature);
  ASSERT_EQ(config.memories.size(), 1u);
  EXPECT_EQ(config.memories[0].name, expected.memories[0].name);
  EXPECT_EQ(config.memories[0].kind, expected.memories[0].kind);
  EXPECT_EQ(config.memories[0].gate, expected.memories[0].gate);
  ASSERT_NE(config.projection, nullptr);
  EXPECT_EQ(config.projection->input_dim, expected.projection->input_dim);
  EXPECT_EQ(config.projection->query, expected.projection->query);
  EXPECT_EQ(config.projection->key, expected.projection->key);
  EXPECT_EQ(config.projection->value, expected.projection->value);
  EXPECT_EQ(config.labels, expected.labels);
}

// `ranges` are those of the store "ranges", if the version has it.
void CheckHistory(const std::string& directory, int version,
                  const std::vector<StoreRange>& ranges = Ranges()) {
  auto engine = Open(directory);
  ASSERT_NE(engine, nullptr);
  const auto stores = engine->ListStores("", "", 10);
  ASSERT_THAT(stores, IsOk());
  ASSERT_EQ(stores->stores.size(), version == 1 ? 2u : version == 2 ? 4u : version == 3 ? 5u : 6u);
  for (const StoreInfo& store : stores->stores) {
    EXPECT_EQ(store.config.ranges,
              store.config.name == "ranges" ? ranges : std::vector<StoreRange>())
        << store.config.name;
  }
  const auto rows = engine->GetStore("rows"), settings = engine->GetStore("settings");
  ASSERT_THAT(rows, IsOk());
  EXPECT_EQ(rows->config.score, Score::kDot);
  EXPECT_EQ(rows->row_count, kRows);
  EXPECT_EQ(rows->live_row_count, kRows - 1 - (kDeletedEnd - kDeletedBegin));
  ASSERT_THAT(settings, IsOk());
  EXPECT_EQ(settings->row_count, 0u);
  CheckSettings(settings->config);
  CheckRows(*engine);
  if (version >= 2) CheckNarrowRows(*engine);
  if (version >= 3) CheckCompacted(*engine);
  for (const std::uint64_t end : {kRows, kHalf, std::uint64_t{1'024}, std::uint64_t{7}}) {
    CheckMemory(*engine, "average", end, Divided(Forgetting(end, 1)));
    CheckMemory(*engine, "sum", end, Forgetting(end, kDecay));
    CheckMemory(*engine, "decayed", end, Divided(Forgetting(end, kDecay)));
    CheckMemory(*engine, "gated", end, Forgetting(end, 0.5));
  }
  const auto writer = engine->GetWriter("rows", "writer");
  ASSERT_THAT(writer, IsOk());
  EXPECT_EQ(writer->last_sequence, kRows);
  EXPECT_EQ(writer->last_position, kRows - 1);

  // It takes more, and keeps it.
  EXPECT_TRUE(AppendAndWait(*engine, Rows(0, 1).Request(kRows))->duplicate);
  AppendRows(*engine, kRows, kRows + 2'000);
  engine = nullptr;
  engine = Open(directory);
  ASSERT_NE(engine, nullptr);
  CheckMemory(*engine, "sum", kRows + 2'000, Forgetting(kRows + 2'000, kDecay));
}

TEST(FormatTest, OpensWhatEarlierVersionsWrote) {
  int count = 0;
  for (const auto& version : fs::directory_iterator(SOFTLOOKUP_GOLDEN_STORAGE)) {
    SCOPED_TRACE(version.path());
    ++count;
    for (const auto& file : fs::directory_iterator(version)) {
      EXPECT_LT(file.file_size(), 1'000'000u) << file.path();
    }
    const TemporaryDirectory directory;
    const std::string copy = directory.path() + "/data";
    fs::copy(version.path(), copy, fs::copy_options::recursive);
    LoadObserver ignore;
    EXPECT_THAT(Engine::Verify(copy, ignore), IsOk());
    CheckHistory(copy, std::stoi(version.path().filename().string().substr(1)));
  }
  EXPECT_GE(count, 4);
}

TEST(FormatTest, RestoresStoresOfCopiesThatEarlierVersionsWrote) {
  for (const auto& version : fs::directory_iterator(SOFTLOOKUP_GOLDEN_STORAGE)) {
    SCOPED_TRACE(version.path());
    const TemporaryDirectory directory;
    const std::string copy = directory.path() + "/copy", data = directory.path() + "/data";
    fs::copy(version.path(), copy, fs::copy_options::recursive);
    const int number = std::stoi(version.path().filename().string().substr(1));
    std::vector<std::string> stores = {"rows", "settings"};
    if (number >= 2) stores.insert(stores.end(), {"bfloat16", "int8"});
    if (number >= 3) stores.push_back("compacted");
    if (number >= 4) stores.push_back("ranges");
    {
      const auto engine = Open(data);
      ASSERT_NE(engine, nullptr);
      for (const std::string& store : stores) {
        const auto restored =
            engine->RestoreStore({.directory = copy, .store = store}, CancelToken());
        EXPECT_THAT(restored, IsOk()) << store;
      }
    }
    CheckHistory(data, number, /*ranges=*/{});
  }
}

TEST(FormatTest, OpensWhatThisVersionWrites) {
  const char* golden = std::getenv("SOFTLOOKUP_WRITE_GOLDEN");
  const TemporaryDirectory directory;
  const std::string data = directory.path() + "/data", killed = directory.path() + "/killed";
  WriteHistory(data, killed);
  if (golden != nullptr) {
    fs::copy(killed, golden, fs::copy_options::recursive);
    fs::remove(absl::StrCat(golden, "/RESERVE"));  // It is large, and holds nothing.
  }
  CheckHistory(data, kVersion);
  CheckHistory(killed, kVersion);
}

}  // namespace
}  // namespace softlookup
