#include "core/engine/entry_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/engine/load_stores.h"
#include "core/engine/open_on_log.h"
#include "core/replicated_log/entry_batch.h"
#include "core/storage/records.h"
#include "softlookup/store_ranges.h"
#include "tests/core/store/same_store.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup {
namespace {

using ::softlookup::testing::AppendAndWait;
using ::softlookup::testing::ExpectSameStore;
using ::softlookup::testing::IsOk;
using ::softlookup::testing::NormalFloats;
using ::softlookup::testing::TemporaryDirectory;

// The log of a primary: passes each batch on as the bytes of an entry.
class PrimaryLog final : public CommitLog {
 public:
  using OnEntry = std::function<void(const std::string&)>;

  PrimaryLog(std::unique_ptr<CommitLog> log, OnEntry on_entry)
      : log_(std::move(log)), on_entry_(std::move(on_entry)) {}

  std::unique_ptr<LogBatch> NewBatch() override { return std::make_unique<EntryBatch>(); }
  absl::Status Commit(LogBatch& batch, Sync sync) override {
    auto& changes = static_cast<EntryBatch&>(batch);
    if (changes.empty()) return absl::OkStatus();
    const std::string entry = changes.Take();
    const std::unique_ptr<LogBatch> own = log_->NewBatch();
    EXPECT_THAT(AddChanges(entry, *own), IsOk());
    const absl::Status committed = log_->Commit(*own, sync);
    if (committed.ok()) on_entry_(entry);
    return committed;
  }
  bool has_failed() const override { return log_->has_failed(); }
  absl::Status Scan(
      absl::string_view begin, absl::string_view end,
      absl::FunctionRef<absl::Status(absl::string_view, absl::string_view)> visit) const override {
    return log_->Scan(begin, end, visit);
  }
  void AllowTableCompaction() override {}
  std::string LastKeyInTables() const override { return ""; }
  std::vector<KeyRange> RangesInTables(absl::Span<const KeyRange>) const override { return {}; }
  absl::Status ReadTables(absl::Span<const KeyRange>) const override { return absl::OkStatus(); }
  void AwaitReclaimed() override {}
  std::uint64_t deleted_bytes() const override { return 0; }
  absl::Status VerifyChecksums() const override { return absl::OkStatus(); }
  absl::Status CopyTo(const std::string& directory) override { return log_->CopyTo(directory); }

 private:
  const std::unique_ptr<CommitLog> log_;
  const OnEntry on_entry_;
};

// A primary's engine, and the stores of a replica that replays its entries.
class EntryReplayTest : public ::testing::Test {
 protected:
  EntryReplayTest() {
    auto replica_log = OpenCommitLog(directory_.path() + "/replica");
    EXPECT_THAT(replica_log, IsOk());
    replica_log_ = *std::move(replica_log);
    auto log = OpenCommitLog(directory_.path() + "/primary");
    EXPECT_THAT(log, IsOk());
    auto engine =
        OpenOnLog({.thread_count = 1},
                  std::make_unique<PrimaryLog>(
                      *std::move(log), [this](const std::string& entry) { OnEntry(entry); }),
                  [](const absl::Status& damage) { ADD_FAILURE() << damage; });
    EXPECT_THAT(engine, IsOk());
    engine_ = *std::move(engine);
  }

  EntryReplay Replay() {
    return {.log = *replica_log_,
            .stores = stores_,
            .executor = [](absl::AnyInvocable<void()> task) { task(); },
            .last_store_number = last_number_};
  }

  void OnEntry(const std::string& entry) {
    last_entry_ = entry;
    const std::unique_ptr<LogBatch> batch = replica_log_->NewBatch();
    ASSERT_THAT(AddChanges(entry, *batch), IsOk());
    ASSERT_THAT(replica_log_->Commit(*batch, Sync::kNo), IsOk());
    ASSERT_THAT(Replay().Replay(entry), IsOk());
  }

  // The replica's stores are those that its log has, and the counts are right.
  void ExpectStoresOfLog() {
    const auto named = StoresIn(*replica_log_);
    ASSERT_THAT(named, IsOk());
    ASSERT_EQ(named->size(), stores_.table.Stores().size());
    std::uint64_t rows = 0;
    for (const NamedStore& store : *named) {
      SCOPED_TRACE(store.name);
      const auto mine = stores_.table.Find("name", store.name);
      ASSERT_THAT(mine, IsOk());
      EXPECT_EQ((*mine)->number(), store.store);
      EXPECT_EQ(stores_.table.NameOf(store.store), store.name);
      const LoadedStore loaded = LoadStore(store, *replica_log_, nullptr);
      ASSERT_THAT(loaded.store, IsOk());
      ASSERT_NO_FATAL_FAILURE(ExpectSameStore(*(*mine)->snapshot(), *(*loaded.store)->snapshot()));
      EXPECT_EQ((*mine)->info().config.labels, (*loaded.store)->info().config.labels);
      EXPECT_EQ((*mine)->info().config.temperature, (*loaded.store)->info().config.temperature);
      EXPECT_EQ((*mine)->info().config.ranges, (*loaded.store)->info().config.ranges);
      ASSERT_NO_FATAL_FAILURE(ExpectSameWriters((*mine)->editor(), (*loaded.store)->editor()));
      rows += (*mine)->snapshot()->row_count();
    }
    EXPECT_EQ(stores_.totals.rows(), static_cast<std::int64_t>(rows));
    EXPECT_EQ(stores_.totals.stores(), static_cast<std::int64_t>(named->size()));
  }

  // The next append gets the same answer from both: both know the same ids and writers.
  static void ExpectSameWriters(StoreEditor& mine, StoreEditor& theirs) {
    for (const std::string writer : {"a", "b"}) {
      const WriterState* m = mine.FindWriter(writer);
      const WriterState* t = theirs.FindWriter(writer);
      ASSERT_EQ(m == nullptr, t == nullptr) << writer;
      if (m == nullptr) continue;
      EXPECT_EQ(m->last_sequence, t->last_sequence);
      EXPECT_EQ(m->last_position, t->last_position);
    }
    std::vector<std::uint64_t> ids(kIds);
    std::iota(ids.begin(), ids.end(), 0);
    const StoreConfig& config = mine.newest()->config();
    const std::vector<float> zeros(kIds * std::max(config.key_dim, config.value_dim));
    const RowBatch batch{.keys = {zeros.data(), kIds, config.key_dim},
                         .values = {zeros.data(), kIds, config.value_dim},
                         .ids = ids,
                         .on_conflict = OnConflict::kReplace};
    const auto m = mine.Append(batch), t = theirs.Append(batch);
    ASSERT_THAT(m, IsOk());
    ASSERT_THAT(t, IsOk());
    EXPECT_EQ(m->masked_blocks, t->masked_blocks);
    EXPECT_EQ(m->snapshot->live_row_count(), t->snapshot->live_row_count());
    mine.Rollback();
    theirs.Rollback();
  }

  static constexpr std::int64_t kIds = 500;
  const TemporaryDirectory directory_;
  std::unique_ptr<CommitLog> replica_log_;
  CountedStores stores_{0};
  std::atomic<std::uint64_t> last_number_{0};
  std::string last_entry_;
  std::unique_ptr<Engine> engine_;
};

constexpr StorageType kStorageTypes[] = {StorageType::kFloat32, StorageType::kBfloat16,
                                         StorageType::kInt8};

class RandomReplayTest : public EntryReplayTest, public ::testing::WithParamInterface<int> {};

// The stores are compared with those that a start would load, which tests of the loader compare
// with those of the primary.
TEST_P(RandomReplayTest, TheStoresAreThoseThatAStartWouldLoad) {
  std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()));
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const std::vector<std::string> names = {"one", "two", "acme/three"};
  std::map<std::string, std::uint64_t> sequence;
  for (int step = 0; step < 60; ++step) {
    SCOPED_TRACE(step);
    const std::string& name = names[below(names.size())];
    const auto info = engine_->GetStore(name);
    if (!info.ok()) {
      ASSERT_THAT(
          engine_->CreateStore(
              {.name = name,
               .key_dim = 4,
               .value_dim = 3,
               .num_heads = 1,
               .storage_type = kStorageTypes[below(3)],
               .memories = {{.name = "recent", .kind = MemoryKind::kDecayedSum, .decay = 0.9}}}),
          IsOk());
      continue;
    }
    switch (below(11)) {
      case 10: {
        const std::uint64_t step = RangeStep(info->config);
        std::vector<StoreRange> ranges;
        for (std::uint64_t i = below(4); i > 0; --i) {
          ranges.push_back({.begin = ranges.size() * step, .nodes = {absl::StrCat("n", below(3))}});
        }
        ASSERT_THAT(engine_->SetRanges(name, ranges), IsOk());
        break;
      }
      case 0:
        (void)engine_->RenameStore(
            {.name = name, .new_name = names[below(names.size())], .replace = below(2) == 0});
        break;
      case 1:
        if (below(3) == 0) {
          ASSERT_THAT(engine_->DeleteStore(name), IsOk());
        }
        break;
      case 2:
        ASSERT_THAT(
            engine_->UpdateStore(
                name,
                {.temperature = 0.5 + static_cast<double>(below(100)),
                 .labels = std::map<std::string, std::string>{{"step", std::to_string(step)}}}),
            IsOk());
        break;
      case 3: {
        RowFilter filter{.begin = below(info->row_count + 1)};
        filter.end = *filter.begin + below(info->row_count - *filter.begin + 1);
        ASSERT_THAT(engine_->DeleteRows(name, filter), IsOk());
        break;
      }
      case 4:
        ASSERT_THAT(engine_->CompactStore({.store = name, .end_memories = true}, CancelToken()),
                    IsOk());
        break;
      default: {
        const auto rows =
            static_cast<std::int64_t>(below(3) == 0 ? 1 + below(3000) : 1 + below(20));
        const std::vector<float> keys = NormalFloats(rows * 4, random());
        const std::vector<float> values = NormalFloats(rows * 3, random());
        AppendRequest request{
            .store = name, .keys = {keys.data(), rows, 4}, .values = {values.data(), rows, 3}};
        std::vector<std::uint64_t> ids;
        if (rows <= kIds / 2 && below(2) == 0) {
          const std::uint64_t first = below(kIds - static_cast<std::uint64_t>(rows));
          for (std::int64_t i = 0; i < rows; ++i) ids.push_back(first + i);
          request.ids = ids;
          request.on_conflict = below(2) == 0 ? OnConflict::kReplace : OnConflict::kSkip;
        }
        std::vector<std::vector<std::string>> labels;
        if (below(3) == 0) {
          for (std::int64_t i = 0; i < rows; ++i) {
            labels.push_back(i % 2 == 0 ? std::vector<std::string>()
                                        : std::vector<std::string>{std::to_string(below(50))});
          }
          request.row_labels = labels;
        }
        if (below(3) == 0) {
          request.writer = below(2) == 0 ? "a" : "b";
          request.sequence = ++sequence[request.writer];
        }
        ASSERT_THAT(AppendAndWait(*engine_, request), IsOk());
      }
    }
    ASSERT_NO_FATAL_FAILURE(ExpectStoresOfLog());
  }
  EXPECT_GE(last_number_, 1u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomReplayTest, ::testing::Range(0, 12));

TEST_F(EntryReplayTest, AnEntryThatDoesNotFollowIsRefusedAndChangesNothing) {
  ASSERT_THAT(engine_->CreateStore({.name = "s", .key_dim = 1, .value_dim = 1}), IsOk());
  const float component = 1;
  const AppendRequest request{
      .store = "s", .keys = {&component, 1, 1}, .values = {&component, 1, 1}};
  ASSERT_THAT(AppendAndWait(*engine_, request), IsOk());
  const absl::Status again = Replay().Replay(last_entry_);
  EXPECT_EQ(ReasonOf(again), "DATA_LOSS") << again;
  EXPECT_THAT(again.message(), ::testing::HasSubstr("store \"s\""));
  ExpectStoresOfLog();
}

TEST_F(EntryReplayTest, AStoreThatIsRestoredComesWithItsRows) {
  ASSERT_THAT(engine_->CreateStore({.name = "s", .key_dim = 1, .value_dim = 1}), IsOk());
  const std::vector<float> components = NormalFloats(50'000, 1);  // Their record is split.
  const MatrixView rows{components.data(), 50'000, 1};
  ASSERT_THAT(AppendAndWait(*engine_, {.store = "s", .keys = rows, .values = rows}), IsOk());
  const std::string copy = directory_.path() + "/copy";
  ASSERT_THAT(engine_->CopyTo(copy), IsOk());
  ASSERT_THAT(engine_->RestoreStore({.directory = copy, .store = "s", .name = "t"}, CancelToken()),
              IsOk());
  ExpectStoresOfLog();
  EXPECT_EQ(stores_.table.Stores().size(), 2u);
}

TEST_F(EntryReplayTest, WhoWaitsForARevisionHearsOfIt) {
  ASSERT_THAT(engine_->CreateStore({.name = "s", .key_dim = 1, .value_dim = 1}), IsOk());
  absl::Status heard = absl::UnknownError("not yet");
  (*stores_.table.Find("name", "s"))
      ->WhenRevision(2, std::make_shared<CancelToken>(),
                     [&](absl::Status status) { heard = std::move(status); });
  const float component = 1;
  ASSERT_THAT(
      AppendAndWait(*engine_,
                    {.store = "s", .keys = {&component, 1, 1}, .values = {&component, 1, 1}}),
      IsOk());
  EXPECT_THAT(heard, IsOk());
}

}  // namespace
}  // namespace softlookup
