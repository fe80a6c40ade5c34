// A directory with a store that is written, compacted and opened again, against an engine without
// one that never compacts, and against a plain list of the live rows. A failure prints
// SOFTLOOKUP_TEST_SEED=N; with that in the environment the run begins with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "softlookup/engine.h"
#include "tests/core/engine/compaction_checks.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/sanitized.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup {
namespace {

using ::softlookup::testing::AllRowsIn;
using ::softlookup::testing::AppendAndWait;
using ::softlookup::testing::CompactNow;
using ::softlookup::testing::Draw;
using ::softlookup::testing::ExpectSameAnswers;
using ::softlookup::testing::ExpectSameRows;
using ::softlookup::testing::IsOk;
using ::softlookup::testing::LookupAndWait;
using ::softlookup::testing::TemporaryDirectory;

// A directory that is compacted and opened again, and an engine that is neither.
class CompactedTwins {
 public:
  explicit CompactedTwins(std::uint64_t seed) : draw_(seed), plain_(Engine::Create({})) {
    constexpr StorageType kTypes[] = {StorageType::kFloat32, StorageType::kBfloat16,
                                      StorageType::kInt8};
    config_ = {.name = "s",
               .key_dim = draw_.Coin() ? 40 : draw_.Int(1, 12),
               .value_dim = draw_.Int(1, 4),
               .temperature = 0.7,
               .storage_type = kTypes[draw_.Int(0, 2)]};
    if (draw_.Chance(0.3)) config_.value_dim = 2000;  // Blocks of fewer rows.
    if (draw_.Coin()) {
      config_.memories = {{.name = "d", .kind = MemoryKind::kDecayedAverage, .decay = 0.9}};
    }
    Open();
    EXPECT_THAT(kept_->CreateStore(config_), IsOk());
    EXPECT_THAT(plain_->CreateStore(config_), IsOk());
  }

  void Run(int steps) {
    for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE(step);
      const std::int64_t what = draw_.Int(0, 99);
      if (what < 40) {
        Append();
      } else if (what < 70) {
        Delete();
      } else if (what < 90) {
        Compact();
      } else {
        Open();
      }
      if (step % 4 == 0) Compare();
    }
    Compact();
    Compare();
    Open();
    Compare();
  }

 private:
  struct ModelRow {
    std::optional<std::uint64_t> id;
    std::vector<std::string> labels;
  };

  void Open() {
    kept_ = nullptr;
    auto engine = Engine::Open({.thread_count = 2}, directory_.path(),
                               [](const absl::Status& damage) { ADD_FAILURE() << damage; });
    ASSERT_THAT(engine, IsOk());
    kept_ = *std::move(engine);
  }

  void Append() {
    // Blocks have from 32 to 1,024 rows.
    const std::int64_t most = config_.value_dim > 1000 ? 150 : 2500;
    const std::int64_t count = draw_.Int(1, draw_.Coin() ? most : 30);
    const std::vector<float> keys = draw_.Normal(count * config_.key_dim);
    const std::vector<float> values = draw_.Normal(count * config_.value_dim);
    std::vector<std::uint64_t> ids;
    std::vector<std::vector<std::string>> labels;
    const std::int64_t first_id = draw_.Int(0, 3000);
    const bool has_ids = draw_.Coin(), has_labels = draw_.Coin();
    for (std::int64_t row = 0; row < count; ++row) {
      if (has_ids) ids.push_back(static_cast<std::uint64_t>(first_id + row));
      if (has_labels) labels.emplace_back(draw_.Int(0, 2), absl::StrCat("l", draw_.Int(0, 3)));
    }
    const AppendRequest request{
        .store = "s",
        .keys = {.data = keys.data(), .rows = count, .cols = config_.key_dim},
        .values = {.data = values.data(), .rows = count, .cols = config_.value_dim},
        .ids = ids,
        .on_conflict = OnConflict::kReplace,
        .row_labels = labels,
        .durable = draw_.Coin()};
    const auto kept = AppendAndWait(*kept_, request), plain = AppendAndWait(*plain_, request);
    ASSERT_THAT(kept, IsOk());
    ASSERT_THAT(plain, IsOk());
    EXPECT_EQ(kept->first_position, plain->first_position);
    EXPECT_EQ(kept->appended_count, plain->appended_count);
    for (std::int64_t row = 0; row < count; ++row) {
      ModelRow added;
      if (has_ids) {
        added.id = ids[row];
        std::erase_if(model_, [&](const auto& other) { return other.second.id == added.id; });
      }
      if (has_labels) added.labels = labels[row];
      model_[kept->first_position + static_cast<std::uint64_t>(row)] = added;
    }
  }

  void Delete() {
    const auto row_count = static_cast<std::int64_t>(plain_->GetStore("s")->row_count);
    RowFilter filter;
    filter.begin = static_cast<std::uint64_t>(draw_.Int(0, row_count));
    filter.end =
        static_cast<std::uint64_t>(draw_.Int(static_cast<std::int64_t>(*filter.begin), row_count));
    if (draw_.Chance(0.3)) filter.no_labels = {absl::StrCat("l", draw_.Int(0, 3))};
    const auto kept = kept_->DeleteRows("s", filter), plain = plain_->DeleteRows("s", filter);
    ASSERT_THAT(kept, IsOk());
    EXPECT_EQ(kept->deleted_count, plain->deleted_count);
    std::erase_if(model_, [&](const auto& row) {
      const std::vector<std::string>& labels = row.second.labels;
      const bool stays =
          !filter.no_labels.empty() &&
          std::find(labels.begin(), labels.end(), filter.no_labels[0]) != labels.end();
      return row.first >= *filter.begin && row.first < *filter.end && !stays;
    });
  }

  void Compact() {
    const auto result = CompactNow(*kept_);
    ASSERT_THAT(result, IsOk());
    dropped_ += result->dropped_rows;
    EXPECT_LE(dropped_, result->store.row_count - result->store.live_row_count);
    EXPECT_EQ(CompactNow(*kept_)->dropped_rows, 0u);
  }

  void Compare() {
    const StoreInfo kept = *kept_->GetStore("s"), plain = *plain_->GetStore("s");
    ASSERT_EQ(kept.row_count, plain.row_count);
    ASSERT_EQ(kept.live_row_count, plain.live_row_count);
    ASSERT_EQ(kept.live_row_count, model_.size());
    const std::vector<Row> rows = AllRowsIn(*kept_);
    ASSERT_NO_FATAL_FAILURE(ExpectSameRows(rows, AllRowsIn(*plain_)));
    auto expected = model_.begin();
    for (const Row& row : rows) {
      ASSERT_EQ(row.position, expected->first);
      ASSERT_EQ(row.id, expected->second.id);
      ASSERT_EQ(row.labels, expected->second.labels);
      ++expected;
    }
    CompareMemories(plain);
    for (int i = 0; i < 4; ++i) CompareLookups();
  }

  void CompareMemories(const StoreInfo& info) {
    for (const char* memory : {"average", "d"}) {
      if (*memory == 'd' && config_.memories.empty()) continue;
      const auto row_count = static_cast<std::int64_t>(info.row_count);
      for (const std::int64_t end : {row_count, draw_.Int(0, row_count)}) {
        const auto index = static_cast<std::uint64_t>(end);
        const auto a = kept_->GetMemory("s", memory, std::nullopt, index);
        const auto b = plain_->GetMemory("s", memory, std::nullopt, index);
        ASSERT_THAT(b, IsOk());
        if (!a.ok() && end < row_count) {
          ASSERT_EQ(ReasonOf(a.status()), "ROWS_COMPACTED");
          ASSERT_GT(dropped_, 0u);
          continue;
        }
        ASSERT_THAT(a, IsOk());
        ASSERT_EQ(a->memory.key, b->memory.key);
        ASSERT_EQ(a->memory.value, b->memory.value);
        ASSERT_EQ(a->memory.weight, b->memory.weight);
      }
    }
  }

  void CompareLookups() {
    const std::vector<float> queries = draw_.Normal(3 * config_.key_dim);
    LookupRequest request{
        .store = "s",
        .queries = {.data = queries.data(), .rows = 3, .cols = config_.key_dim},
        .options = {.score = static_cast<Score>(draw_.Int(1, static_cast<int>(kScoreMax))),
                    .mode = static_cast<Mode>(draw_.Int(1, 3)),
                    .weights = WeightsMode::kTop}};
    if (draw_.Chance(0.3)) request.options.top_k = static_cast<std::uint32_t>(draw_.Int(1, 40));
    if (draw_.Chance(0.3)) request.options.recency_decay = 0.99;
    if (draw_.Chance(0.3)) request.filter.no_labels = {"l1"};
    if (draw_.Chance(0.3)) request.filter.any_labels = {"l2", "l3"};
    if (draw_.Chance(0.3)) request.filter.last = static_cast<std::uint64_t>(draw_.Int(0, 4000));
    if (draw_.Chance(0.2)) request.filter.ids = {1, 5, 100, 500, 1500};
    const auto a = LookupAndWait(*kept_, request), b = LookupAndWait(*plain_, request);
    ASSERT_EQ(a.status(), b.status());
    if (a.ok()) ExpectSameAnswers(*a, *b);
  }

  Draw draw_;
  StoreConfig config_;
  const TemporaryDirectory directory_;
  std::unique_ptr<Engine> kept_;
  const std::unique_ptr<Engine> plain_;
  std::map<std::uint64_t, ModelRow> model_;  // Live rows by position.
  std::uint64_t dropped_ = 0;
};

TEST(CompactionRandomTest, WritesCompactionsAndRestartsInAnyOrderChangeNoAnswer) {
  const std::uint64_t first = testing::FirstSeed();
  for (std::uint64_t seed = first; seed < first + testing::RandomCases(6) && !HasFailure();
       ++seed) {
    SCOPED_TRACE("SOFTLOOKUP_TEST_SEED=" + std::to_string(seed));
    CompactedTwins(seed).Run(60);
  }
}

}  // namespace
}  // namespace softlookup
