// An engine with a directory against one without: whatever is written, and however often the first
// is closed and opened again, both must answer the same, bit for bit. A failure prints
// SOFTLOOKUP_TEST_SEED=N; with that in the environment the run begins with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/storage/commit_log.h"
#include "core/storage/records.h"
#include "softlookup/engine.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/sanitized.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup {
namespace {

using ::softlookup::testing::AppendAndWait;
using ::softlookup::testing::IsOk;
using ::softlookup::testing::LookupAndWait;
using ::softlookup::testing::NormalFloats;
using ::softlookup::testing::StatusIs;
using ::softlookup::testing::TemporaryDirectory;

std::unique_ptr<Engine> OpenOrDie(const std::string& directory) {
  auto engine = Engine::Open({.thread_count = 2}, directory,
                             [](const absl::Status& damage) { ADD_FAILURE() << damage.message(); });
  EXPECT_THAT(engine, IsOk());
  return engine.ok() ? *std::move(engine) : nullptr;
}

class Twins {
 public:
  explicit Twins(std::uint64_t seed)
      : generator_(seed), kept_(OpenOrDie(directory_.path())), plain_(Engine::Create({})) {}

  void Run(int steps) {
    for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
      const std::string store(1, static_cast<char>('a' + Number(3)));
      const std::uint64_t what = Number(100);
      if (what < 8) {
        Create(store);
      } else if (what < 10) {
        EXPECT_EQ(kept_->DeleteStore(store).code(), plain_->DeleteStore(store).code());
      } else if (what < 14) {
        Update(store);
      } else if (what < 17) {
        Rename(store);
      } else if (what < 26) {
        Delete(store);
      } else if (what < 34) {
        kept_ = nullptr;  // One process at a time has the directory.
        kept_ = OpenOrDie(directory_.path());
        ASSERT_NE(kept_, nullptr);
      } else {
        Append(store);
      }
      if (step % 5 == 0) Compare(store);
    }
    kept_ = nullptr;
    kept_ = OpenOrDie(directory_.path());
    for (const char* store : {"a", "b", "c"}) Compare(store);
  }

 private:
  std::uint64_t Number(std::uint64_t count) { return generator_() % count; }

  void Create(const std::string& name) {
    constexpr StorageType kTypes[] = {StorageType::kFloat32, StorageType::kBfloat16,
                                      StorageType::kInt8};
    StoreConfig config{.name = name,
                       .key_dim = static_cast<std::int64_t>(1 + Number(20)),
                       .value_dim = static_cast<std::int64_t>(1 + Number(6)),
                       .temperature = 0.5,
                       .storage_type = kTypes[Number(3)],
                       .labels = {{"made", std::to_string(Number(9))}}};
    if (config.key_dim % 2 == 0 && config.value_dim % 2 == 0) config.num_heads = 2;
    if (Number(2) == 0) {
      config.memories = {{.name = "d", .kind = MemoryKind::kDecayedAverage, .decay = 0.9},
                         {.name = "g",
                          .kind = MemoryKind::kGatedAverage,
                          .gate = NormalFloats(config.key_dim + 1, Number(100))}};
    }
    EXPECT_EQ(kept_->CreateStore(config).status().code(),
              plain_->CreateStore(config).status().code());
  }

  void Update(const std::string& name) {
    const StoreUpdate update{.temperature = 0.1 + 0.1 * static_cast<double>(Number(10)),
                             .labels = {{{"new", "label"}}}};
    EXPECT_EQ(kept_->UpdateStore(name, update).status().code(),
              plain_->UpdateStore(name, update).status().code());
  }

  void Rename(const std::string& name) {
    const std::string new_name(1, static_cast<char>('a' + Number(3)));
    const StoreRename rename{.name = name, .new_name = new_name, .replace = Number(2) == 0};
    const auto kept = kept_->RenameStore(rename), plain = plain_->RenameStore(rename);
    ASSERT_EQ(kept.status().code(), plain.status().code()) << kept.status();
    if (!kept.ok()) return;
    EXPECT_EQ(kept->store.revision, plain->store.revision);
    EXPECT_EQ(kept->replaced.has_value(), plain->replaced.has_value());
    Compare(new_name);
  }

  void Delete(const std::string& name) {
    const auto info = plain_->GetStore(name);
    if (!info.ok()) return;
    RowFilter filter;
    filter.begin = Number(info->row_count + 1);
    filter.end = *filter.begin + Number(info->row_count - *filter.begin + 1);
    if (Number(3) == 0) filter.any_labels = {"l" + std::to_string(Number(4))};
    const auto kept = kept_->DeleteRows(name, filter), plain = plain_->DeleteRows(name, filter);
    ASSERT_THAT(kept, IsOk());
    EXPECT_EQ(kept->deleted_count, plain->deleted_count);
    EXPECT_EQ(kept->revision, plain->revision);
  }

  void Append(const std::string& name) {
    const auto info = plain_->GetStore(name);
    if (!info.ok()) return;
    const StoreConfig& config = info->config;
    const std::int64_t rows = static_cast<std::int64_t>(1 + Number(Number(8) == 0 ? 1500 : 40));
    const std::vector<float> keys = NormalFloats(rows * config.key_dim, generator_());
    const std::vector<float> values = NormalFloats(rows * config.value_dim, generator_());
    std::vector<std::uint64_t> ids;
    std::vector<std::vector<std::string>> labels;
    const std::uint64_t first_id = Number(500);
    const bool has_ids = Number(2) == 0, has_labels = Number(2) == 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      if (has_ids) ids.push_back(first_id + static_cast<std::uint64_t>(row));
      if (has_labels) labels.emplace_back(Number(3), "l" + std::to_string(Number(4)));
    }
    AppendRequest request{.store = name,
                          .keys = {.data = keys.data(), .rows = rows, .cols = config.key_dim},
                          .values = {.data = values.data(), .rows = rows, .cols = config.value_dim},
                          .ids = ids,
                          .on_conflict = static_cast<OnConflict>(1 + Number(3)),
                          .row_labels = labels,
                          .return_memories = {"average"}};
    if (Number(2) == 0) {
      request.writer = "w" + std::to_string(Number(2));
      request.sequence = 1 + Number(40);  // Often a duplicate.
    }
    request.durable = Number(2) == 0;
    request.may_block = Number(2) == 0;
    const auto kept = AppendAndWait(*kept_, request), plain = AppendAndWait(*plain_, request);
    ASSERT_EQ(kept.status().code(), plain.status().code()) << kept.status();
    if (!kept.ok()) return;
    EXPECT_EQ(kept->first_position, plain->first_position);
    EXPECT_EQ(kept->appended_count, plain->appended_count);
    EXPECT_EQ(kept->duplicate, plain->duplicate);
    EXPECT_EQ(kept->revision, plain->revision);
    EXPECT_EQ(kept->memories[0].memory.value, plain->memories[0].memory.value);
  }

  void Compare(const std::string& name) {
    const auto kept = kept_->GetStore(name), plain = plain_->GetStore(name);
    ASSERT_EQ(kept.status().code(), plain.status().code()) << kept.status();
    if (!plain.ok()) return;
    EXPECT_EQ(kept->revision, plain->revision);
    EXPECT_EQ(kept->row_count, plain->row_count);
    EXPECT_EQ(kept->live_row_count, plain->live_row_count);
    EXPECT_EQ(kept->config.temperature, plain->config.temperature);
    EXPECT_EQ(kept->config.labels, plain->config.labels);
    EXPECT_LT(kept->byte_size, plain->byte_size + plain->byte_size / 2 + 100'000);
    CompareRows(name);
    CompareMemories(name, *plain);
    CompareLookups(name, *plain);
    for (const char* writer : {"w0", "w1"}) {
      const auto a = kept_->GetWriter(name, writer), b = plain_->GetWriter(name, writer);
      ASSERT_EQ(a.status().code(), b.status().code());
      if (a.ok()) {
        EXPECT_EQ(a->last_sequence, b->last_sequence);
        EXPECT_EQ(a->last_position, b->last_position);
      }
    }
  }

  void CompareRows(const std::string& name) {
    const auto a = kept_->ReadRows(name, {}), b = plain_->ReadRows(name, {});
    ASSERT_THAT(a, IsOk());
    for (;;) {
      const std::vector<Row> rows = (*a)->Next(100), expected = (*b)->Next(100);
      ASSERT_EQ(rows.size(), expected.size());
      if (rows.empty()) return;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        ASSERT_EQ(rows[i].position, expected[i].position);
        ASSERT_EQ(rows[i].id, expected[i].id);
        ASSERT_EQ(rows[i].labels, expected[i].labels);
        ASSERT_EQ(rows[i].key, expected[i].key);
        ASSERT_EQ(rows[i].value, expected[i].value);
      }
    }
  }

  void CompareMemories(const std::string& name, const StoreInfo& info) {
    std::vector<std::string> memories = {"average"};
    for (const MemorySpec& memory : info.config.memories) memories.push_back(memory.name);
    for (const std::string& memory : memories) {
      const std::uint64_t end = Number(info.row_count + 1);
      const auto a = kept_->GetMemory(name, memory, std::nullopt, end);
      const auto b = plain_->GetMemory(name, memory, std::nullopt, end);
      ASSERT_THAT(a, IsOk());
      ASSERT_EQ(a->memory.key, b->memory.key);
      ASSERT_EQ(a->memory.value, b->memory.value);
      ASSERT_EQ(a->memory.weight, b->memory.weight);
    }
  }

  void CompareLookups(const std::string& name, const StoreInfo& info) {
    const std::vector<float> queries = NormalFloats(3 * info.config.key_dim, generator_());
    LookupRequest request{
        .store = name,
        .queries = {.data = queries.data(), .rows = 3, .cols = info.config.key_dim},
        .options = {.weights = WeightsMode::kTop}};
    if (Number(2) == 0) request.filter.no_labels = {"l1"};
    if (Number(3) == 0) request.source = Source::kRowsAndMemory;
    if (Number(3) == 0) request.filter.last = Number(50);
    const auto a = LookupAndWait(*kept_, request), b = LookupAndWait(*plain_, request);
    ASSERT_THAT(a, IsOk());
    ASSERT_EQ(a->values, b->values);
    for (std::size_t i = 0; i < b->weights.size(); ++i) {
      ASSERT_EQ(a->weights[i].rows.size(), b->weights[i].rows.size());
      for (std::size_t row = 0; row < b->weights[i].rows.size(); ++row) {
        ASSERT_EQ(a->weights[i].rows[row].id, b->weights[i].rows[row].id);
        ASSERT_EQ(a->weights[i].rows[row].weight, b->weights[i].rows[row].weight);
      }
    }
  }

  std::mt19937_64 generator_;
  const TemporaryDirectory directory_;
  std::unique_ptr<Engine> kept_;
  const std::unique_ptr<Engine> plain_;
};

TEST(RecoveryTest, AnEngineOpenedAgainIsAsIfItHadNeverStopped) {
  const std::uint64_t first = testing::FirstSeed();
  for (std::uint64_t seed = first; seed < first + testing::RandomCases(6) && !HasFailure();
       ++seed) {
    SCOPED_TRACE("SOFTLOOKUP_TEST_SEED=" + std::to_string(seed));
    Twins(seed).Run(150);
  }
}

TEST(RecoveryTest, AnswersLoadingUntilItIsLoaded) {
  const TemporaryDirectory directory;
  StoreConfig config;
  config.name = "s";
  config.key_dim = config.value_dim = 1;
  ASSERT_THAT(OpenOrDie(directory.path())->CreateStore(config), IsOk());
  auto opened = Engine::Open({}, directory.path());
  ASSERT_THAT(opened, IsOk());
  Engine& engine = **opened;
  const float one = 1;
  const MatrixView row{.data = &one, .rows = 1, .cols = 1};
  const AppendRequest append{.store = "s", .keys = row, .values = row};
  for (const absl::Status& status :
       {engine.GetStore("s").status(), engine.ListStores("", "", 1).status(),
        engine.CreateStore(config).status(), engine.DeleteStore("s"),
        engine.RenameStore({.name = "s", .new_name = "t"}).status(),
        AppendAndWait(engine, append).status(),
        LookupAndWait(engine, {.store = "s", .queries = row}).status()}) {
    EXPECT_EQ(ReasonOf(status), reasons::kLoading.name);
    EXPECT_TRUE(RetryAfterOf(status).has_value());
  }

  struct Observer : LoadObserver {
    void OnStore(const StoreInfo& info) override { stores.push_back(info.config.name); }
    void OnProgress(std::int64_t loaded, std::int64_t count) override {
      progress = {loaded, count};
    }
    std::vector<std::string> stores;
    std::pair<std::int64_t, std::int64_t> progress;
  } observer;
  ASSERT_THAT(engine.Load(observer), IsOk());
  EXPECT_THAT(observer.stores, ::testing::ElementsAre("s"));
  EXPECT_THAT(observer.progress, ::testing::Pair(1, 1));
  EXPECT_THAT(engine.GetStore("s"), IsOk());
  EXPECT_THAT(AppendAndWait(engine, append), IsOk());
}

TEST(RecoveryTest, AStoreThatManyThreadsLoadIsTheSame) {
  const TemporaryDirectory directory;
  const auto plain = Engine::Create({});
  std::unique_ptr<Engine> kept = OpenOrDie(directory.path());
  StoreConfig config;
  config.name = "large";
  config.key_dim = 100;
  config.value_dim = 60;
  for (Engine* engine : {plain.get(), kept.get()}) ASSERT_THAT(engine->CreateStore(config), IsOk());
  // 20 MB in appends of all sizes, so that parts begin anywhere in a block, a panel and an append.
  constexpr std::int64_t kRowsMax = 700;
  const std::vector<float> keys = NormalFloats(kRowsMax * 100, 1);
  const std::vector<float> values = NormalFloats(kRowsMax * 60, 2);
  std::vector<std::uint64_t> ids(kRowsMax);
  for (std::int64_t count = 1, total = 0; total < 33'000; count = count * 7 % kRowsMax + 1) {
    for (std::int64_t i = 0; i < count; ++i) ids[i] = static_cast<std::uint64_t>(total + i);
    const AppendRequest request{
        .store = "large",
        .keys = {.data = keys.data(), .rows = count, .cols = 100},
        .values = {.data = values.data(), .rows = count, .cols = 60},
        .ids = absl::MakeConstSpan(ids).first(static_cast<std::size_t>(count)),
        .durable = false};
    for (Engine* engine : {plain.get(), kept.get()}) {
      ASSERT_THAT(AppendAndWait(*engine, request), IsOk());
    }
    total += count;
  }
  kept = nullptr;
  kept = OpenOrDie(directory.path());
  const auto ours = kept->ReadRows("large", {}), theirs = plain->ReadRows("large", {});
  ASSERT_THAT(ours, IsOk());
  ASSERT_THAT(theirs, IsOk());
  for (;;) {
    const std::vector<Row> a = (*ours)->Next(1000), b = (*theirs)->Next(1000);
    ASSERT_EQ(a.size(), b.size());
    if (a.empty()) break;
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i].id, b[i].id);
      ASSERT_EQ(a[i].key, b[i].key) << a[i].position;
      ASSERT_EQ(a[i].value, b[i].value) << a[i].position;
    }
  }
  const std::vector<float> query = NormalFloats(100, 3);
  const LookupRequest lookup{.store = "large",
                             .queries = {.data = query.data(), .rows = 1, .cols = 100}};
  EXPECT_EQ(LookupAndWait(*kept, lookup)->values, LookupAndWait(*plain, lookup)->values);
}

void PutStore(std::uint64_t store, const StoreConfig& config, std::uint64_t row_count,
              LogBatch& batch) {
  batch.Put(EncodeKey({.store = store, .kind = RecordKind::kConfig}),
            EncodeConfig({.config = config}));
  batch.Put(EncodeKey({.store = store, .kind = RecordKind::kRevision}),
            EncodeRevision({.revision = 1, .row_count = row_count}));
}

TEST(RecoveryTest, RecordsThatMakeNoSenseAreDamage) {
  const TemporaryDirectory directory;
  {
    const auto log = OpenCommitLog(directory.path());
    ASSERT_THAT(log, IsOk());
    const std::unique_ptr<LogBatch> batch = (*log)->NewBatch();
    PutStore(1, {.name = "no heads", .key_dim = 2, .value_dim = 2, .num_heads = 0}, 0, *batch);
    PutStore(2, {.name = "no-rows", .key_dim = 2, .value_dim = 2}, std::uint64_t{1} << 60, *batch);
    PutStore(3, {.name = "whole", .key_dim = 2, .value_dim = 2}, 0, *batch);
    ASSERT_THAT((*log)->Commit(*batch, Sync::kYes), IsOk());
  }
  std::vector<std::string> damage;
  const auto engine = Engine::Open({}, directory.path(), [&](const absl::Status& status) {
    damage.emplace_back(status.message());
  });
  ASSERT_THAT(engine, IsOk());
  EXPECT_THAT(damage, ::testing::UnorderedElementsAre(::testing::HasSubstr("no heads"),
                                                      ::testing::HasSubstr("no-rows")));
  EXPECT_THAT((*engine)->GetStore("whole"), IsOk());

  // What is listed can be deleted. A name that no store may have is not listed.
  const ListResult list = *(*engine)->ListStores("", "", 10);
  ASSERT_EQ(list.stores.size(), 2u);
  EXPECT_EQ(list.stores[0].config.name, "no-rows");
  EXPECT_NE(list.stores[0].damage, "");
  EXPECT_EQ(list.stores[1].config.name, "whole");
  EXPECT_EQ(list.stores[1].damage, "");
  EXPECT_THAT((*engine)->DeleteStore("no-rows"), IsOk());
  EXPECT_EQ((*engine)->stats().damaged_stores, 1);
}

TEST(RecoveryTest, StoresWithoutTheirNamesGetThem) {
  const TemporaryDirectory directory;
  {
    const auto log = OpenCommitLog(directory.path());
    ASSERT_THAT(log, IsOk());
    const std::unique_ptr<LogBatch> batch = (*log)->NewBatch();
    PutStore(7, {.name = "old", .key_dim = 2, .value_dim = 2}, 0, *batch);
    batch->Put(EncodeKey({.store = 8, .kind = RecordKind::kConfig}), "damaged");
    ASSERT_THAT((*log)->Commit(*batch, Sync::kYes), IsOk());
  }
  for (int start = 0; start < 2; ++start) {
    int damaged = 0;
    const auto engine = Engine::Open({}, directory.path(), [&](const absl::Status&) { ++damaged; });
    ASSERT_THAT(engine, IsOk());
    EXPECT_EQ(damaged, 1);
    EXPECT_THAT((*engine)->GetStore("old"), IsOk());
    EXPECT_THAT(
        (*engine)->CreateStore({.name = absl::StrCat("new", start), .key_dim = 1, .value_dim = 1}),
        IsOk());
  }
  const auto log = OpenCommitLogToRead(directory.path());
  ASSERT_THAT(log, IsOk());
  std::vector<std::string> names;
  const KeyRange keys = KeysOfNames();
  EXPECT_THAT((*log)->Scan(keys.begin, keys.end,
                           [&](absl::string_view key, absl::string_view value) -> absl::Status {
                             const auto named = ParseName(key, value);
                             EXPECT_THAT(named, IsOk());
                             names.push_back(absl::StrCat(named->store, named->name));
                             return absl::OkStatus();
                           }),
              IsOk());
  EXPECT_THAT(names, ::testing::ElementsAre("7old", "8", "9new0", "10new1"));
}

TEST(RecoveryTest, ASecondEngineIsRefused) {
  const TemporaryDirectory directory;
  const std::unique_ptr<Engine> first = OpenOrDie(directory.path());
  const auto second = Engine::Open({}, directory.path(), [](const absl::Status&) {});
  EXPECT_THAT(second, StatusIs(absl::StatusCode::kFailedPrecondition, "another process"));
  EXPECT_EQ(ReasonOf(second.status()), reasons::kDirectoryInUse.name);
}

TEST(RecoveryTest, ADirectoryThatCannotBeMadeIsAnError) {
  EXPECT_THAT(Engine::Open({}, "/proc/no/such/place", [](const absl::Status&) {}),
              StatusIs(absl::StatusCode::kUnavailable, "/proc/no/such/place"));
}

}  // namespace
}  // namespace softlookup
