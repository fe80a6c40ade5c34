// Which rows an engine keeps in RAM that is one of several of a group, on a real log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/error.h"
#include "softlookup/engine.h"
#include "softlookup/partial_lookup.h"
#include "softlookup/store_ranges.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/part_calls.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

// Keys of this length have sketches and balls, and blocks are small.
constexpr std::int64_t kWideDim = 512;

StoreConfig WideStore() {
  return {.name = "s",
          .key_dim = kWideDim,
          .value_dim = kWideDim,
          .memories = {{.name = "recent", .kind = MemoryKind::kDecayedSum, .decay = 0.97}}};
}

// Two engines with the same rows: one of the server "a" of a group, and one in RAM that has all.
class RangeResidencyTest : public ::testing::Test {
 protected:
  RangeResidencyTest() {
    Open();
    for (Engine* engine : both()) EXPECT_THAT(engine->CreateStore(WideStore()), IsOk());
  }

  void Open() {
    engine_ = nullptr;
    auto opened = Engine::Open({.node = "a", .thread_count = 2}, directory_.path() + "/data",
                               [](const absl::Status& damage) { ADD_FAILURE() << damage; });
    ASSERT_THAT(opened, IsOk());
    engine_ = *std::move(opened);
  }

  std::vector<Engine*> both() const { return {engine_.get(), whole_.get()}; }

  void Append(std::int64_t count) {
    const std::vector<float> keys = NormalFloats(count * kWideDim, ++seed_, 0.05);
    const std::vector<float> values = NormalFloats(count * kWideDim, ++seed_);
    std::vector<std::uint64_t> ids(static_cast<std::size_t>(count));
    std::iota(ids.begin(), ids.end(), 1'000'000 * seed_);
    for (Engine* engine : both()) {
      ASSERT_THAT(AppendAndWait(*engine, {.store = "s",
                                          .keys = {keys.data(), count, kWideDim},
                                          .values = {values.data(), count, kWideDim},
                                          .ids = ids}),
                  IsOk());
    }
  }
  void Delete(std::uint64_t begin, std::uint64_t end) {
    RowFilter rows;
    rows.begin = begin;
    rows.end = end;
    for (Engine* engine : both()) ASSERT_THAT(engine->DeleteRows("s", rows), IsOk());
  }
  void Compact() {
    for (Engine* engine : both()) {
      ASSERT_THAT(engine->CompactStore({.store = "s", .end_memories = true}, CancelToken()),
                  IsOk());
    }
  }

  // Cuts both stores before each step of `cuts`. The nodes of the ranges are named in `nodes`, a
  // letter each.
  void SetRanges(const std::vector<std::uint64_t>& cuts, const std::string& nodes) {
    std::vector<StoreRange> ranges = {{.begin = 0, .nodes = {nodes.substr(0, 1)}}};
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      ranges.push_back({.begin = cuts[i] * step_, .nodes = {nodes.substr(i + 1, 1)}});
    }
    for (Engine* engine : both()) ASSERT_THAT(engine->SetRanges("s", ranges), IsOk());
  }

  // Waits until the ranges of "a" are in RAM, and of the others no whole step.
  void AwaitResidency() {
    const auto is_done = [&] {
      const auto info = engine_->GetRanges("s");
      EXPECT_THAT(info, IsOk());
      for (std::size_t i = 0; i < info->ranges.size(); ++i) {
        const RangeInfo& range = info->ranges[i];
        const bool is_own = range.range.nodes[0] == "a";
        if (is_own ? range.resident_count < range.row_count
                   : range.resident_count > range.row_count % step_) {
          return false;
        }
      }
      return true;
    };
    ASSERT_TRUE(AwaitThat(is_done));
  }
  std::uint64_t bytes() const { return engine_->GetStore("s")->byte_size; }

  LookupRequest Request() const {
    return {.store = "s", .queries = {queries_.data(), 3, kWideDim}};
  }
  absl::StatusOr<PartialLookup> Part(Engine& engine, std::uint64_t begin, std::uint64_t end) const {
    return AnswerPartAndWait(engine, Request(), {.range = {.begin = begin, .end = end}});
  }
  // Both engines answer for these rows with the same bits.
  void ExpectSamePart(std::uint64_t begin, std::uint64_t end) const {
    const auto part = Part(*engine_, begin, end), whole = Part(*whole_, begin, end);
    ASSERT_THAT(part, IsOk());
    ASSERT_THAT(whole, IsOk());
    ASSERT_EQ(part->answers.size(), whole->answers.size());
    for (std::size_t i = 0; i < part->answers.size(); ++i) {
      EXPECT_EQ(part->answers[i].sum, whole->answers[i].sum) << i;
      EXPECT_EQ(part->answers[i].state.weight, whole->answers[i].state.weight) << i;
    }
  }
  void ExpectSameAnswers() const {
    const auto answer = LookupAndWait(*engine_, Request());
    const auto whole = LookupAndWait(*whole_, Request());
    ASSERT_THAT(answer, IsOk());
    ASSERT_THAT(whole, IsOk());
    EXPECT_EQ(answer->values, whole->values);
  }
  void ExpectSameRows() const {
    const auto rows = engine_->ReadRows("s", {}), whole = whole_->ReadRows("s", {});
    ASSERT_THAT(rows, IsOk());
    ASSERT_THAT(whole, IsOk());
    std::int64_t count = 0;
    for (;;) {
      const std::vector<Row> page = (*rows)->Next(77), expected = (*whole)->Next(77);
      ASSERT_THAT((*rows)->status(), IsOk());
      ASSERT_EQ(page.size(), expected.size());
      if (page.empty()) break;
      for (std::size_t i = 0; i < page.size(); ++i) {
        ASSERT_EQ(page[i].position, expected[i].position);
        ASSERT_EQ(page[i].id, expected[i].id);
        ASSERT_EQ(page[i].key, expected[i].key);
        ASSERT_EQ(page[i].value, expected[i].value);
        ++count;
      }
    }
    EXPECT_EQ(static_cast<std::uint64_t>(count), whole_->GetStore("s")->live_row_count);
  }

  const TemporaryDirectory directory_;
  const std::uint64_t step_ = RangeStep(WideStore());
  const std::uint64_t block_rows_ = step_ / 8;
  const std::vector<float> queries_ = NormalFloats(3 * kWideDim, 99, 0.5);
  std::uint64_t seed_ = 0;
  std::unique_ptr<Engine> engine_;
  const std::unique_ptr<Engine> whole_ = Engine::Create({.thread_count = 2});
};

TEST_F(RangeResidencyTest, OnlyTheRowsOfItsRangesAreInMemory) {
  Append(static_cast<std::int64_t>(4 * step_ + 21));
  const std::uint64_t whole_bytes = bytes();
  SetRanges({1, 3}, "bab");
  AwaitResidency();
  // Half of the rows are left, and what is light of all.
  EXPECT_LT(bytes(), whole_bytes * 6 / 10);
  ExpectSamePart(step_, 3 * step_);
  ExpectSamePart(2 * step_, 2 * step_ + 5);
  for (const auto& [begin, end] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {0, step_}, {step_ - 1, step_ + 1}, {3 * step_, PositionRange::kOpenEnd}}) {
    EXPECT_EQ(ReasonOf(Part(*engine_, begin, end).status()), kRowsNotResident.name) << begin;
  }
  EXPECT_EQ(ReasonOf(LookupAndWait(*engine_, Request()).status()), kRowsNotResident.name);
  // Rows that were never full blocks are in RAM at every server.
  ExpectSamePart(4 * step_, PositionRange::kOpenEnd);

  // What is no lookup reads rows from the log.
  ExpectSameRows();
  for (const std::uint64_t end : {std::uint64_t{1}, step_ / 2, step_, 3 * step_ + 7}) {
    for (const std::string name : {"average", "recent"}) {
      const auto memory = engine_->GetMemory("s", name, std::nullopt, end);
      ASSERT_THAT(memory, IsOk());
      EXPECT_EQ(memory->memory.value, whole_->GetMemory("s", name, std::nullopt, end)->memory.value)
          << name << " " << end;
    }
  }

  SetRanges({1}, "aa");
  AwaitResidency();
  EXPECT_NEAR(static_cast<double>(bytes()), static_cast<double>(whole_bytes), 1'000);  // Names.
  ExpectSameAnswers();
}

TEST_F(RangeResidencyTest, RowsThatAreEvictedCanBeDeletedAndCompacted) {
  // Appends that end within blocks, so that records of the log have rows of several.
  for (int i = 0; i < 9; ++i) Append(static_cast<std::int64_t>(step_ / 3 + 5));
  SetRanges({1, 2}, "bab");
  AwaitResidency();
  // Of each third block few rows are left, and of one none.
  for (std::uint64_t block = 0; block < 20; block += 3) {
    Delete(block * block_rows_ + 1, (block + 1) * block_rows_ - 2);
  }
  Delete(17 * block_rows_, 18 * block_rows_);
  ExpectSameRows();
  Compact();
  ExpectSameRows();
  AwaitResidency();
  Delete(3 * block_rows_, 3 * block_rows_ + 1);  // Of a block that is compacted by now.
  ExpectSameRows();
  ExpectSamePart(step_, 2 * step_);
  Append(static_cast<std::int64_t>(step_));
  AwaitResidency();

  Open();  // From records that a compaction has written.
  AwaitResidency();
  ExpectSameRows();
  ExpectSamePart(step_, 2 * step_);
  EXPECT_EQ(ReasonOf(Part(*engine_, 0, step_).status()), kRowsNotResident.name);
  SetRanges({1}, "aa");
  AwaitResidency();
  ExpectSameAnswers();
  ExpectSameRows();
}

TEST_F(RangeResidencyTest, AStartLoadsTheRowsOfItsRangesAlone) {
  Append(static_cast<std::int64_t>(3 * step_));  // The last block is full.
  SetRanges({1, 2}, "abb");
  AwaitResidency();
  const std::uint64_t own_bytes = bytes();
  Open();
  AwaitResidency();
  EXPECT_NEAR(static_cast<double>(bytes()), static_cast<double>(own_bytes), 0.02 * own_bytes);
  ExpectSamePart(0, step_);
  ExpectSameRows();
  Append(50);
  const auto memory = engine_->GetMemory("s", "recent", std::nullopt, std::nullopt);
  EXPECT_EQ(memory->memory.value,
            whole_->GetMemory("s", "recent", std::nullopt, std::nullopt)->memory.value);
}

TEST_F(RangeResidencyTest, LookupsGoOnWhileRangesComeAndGo) {
  Append(static_cast<std::int64_t>(4 * step_));
  const auto expected = Part(*whole_, step_, 2 * step_);
  ASSERT_THAT(expected, IsOk());
  std::atomic<bool> has_ended = false;
  std::thread changes([&] {
    for (int i = 0; i < 10; ++i) {
      SetRanges({1, 2}, i % 2 == 0 ? "bab" : "aaa");
      AwaitResidency();
      Append(static_cast<std::int64_t>(block_rows_));
    }
    has_ended = true;
  });
  std::int64_t count = 0;
  while (!has_ended) {
    const auto part = Part(*engine_, step_, 2 * step_);
    EXPECT_THAT(part, IsOk());
    if (part.ok()) {
      EXPECT_EQ(part->answers[0].sum, expected->answers[0].sum);
    }
    const auto rest = Part(*engine_, 2 * step_, 3 * step_);
    EXPECT_TRUE(rest.ok() || ReasonOf(rest.status()) == kRowsNotResident.name) << rest.status();
    ++count;
  }
  changes.join();
  EXPECT_GT(count, 10);
  AwaitResidency();
  ExpectSameAnswers();
}

// The rows are kept for a second. A machine that takes longer is given another chance.
TEST_F(RangeResidencyTest, LookupsThatHaveBegunAreAnsweredFromEvictedRows) {
  Append(static_cast<std::int64_t>(3 * step_));
  const auto expected = Part(*whole_, step_, 2 * step_);
  ASSERT_THAT(expected, IsOk());
  for (const absl::Time end = absl::Now() + absl::Minutes(1);;) {
    SetRanges({1, 2}, "aaa");
    AwaitResidency();
    const std::uint64_t revision = engine_->GetStore("s")->revision;
    EXPECT_THAT(Part(*engine_, step_, 2 * step_), IsOk());
    SetRanges({1, 2}, "aba");
    AwaitResidency();
    EXPECT_EQ(ReasonOf(Part(*engine_, step_, 2 * step_).status()), kRowsNotResident.name);
    const auto part = AnswerPartAndWait(
        *engine_, Request(), {.range = {.begin = step_, .end = 2 * step_}, .revision = revision});
    if (part.ok()) {
      EXPECT_EQ(part->answers[0].sum, expected->answers[0].sum);
      return;
    }
    ASSERT_EQ(ReasonOf(part.status()), kSnapshotGone.name);
    ASSERT_LT(absl::Now(), end);
  }
}

TEST_F(RangeResidencyTest, CompactionsGoOnWhileRangesComeAndGo) {
  // One record has the rows of several runs: the first loads those of the others.
  Append(static_cast<std::int64_t>(5 * step_));
  std::atomic<bool> has_ended = false;
  std::thread changes([&] {
    for (int i = 0; !has_ended; ++i) SetRanges({1, 2}, i % 2 == 0 ? "bab" : "aab");
  });
  for (std::uint64_t round = 0; round < 3; ++round) {
    for (std::uint64_t block = 0; block < 5 * 8; ++block) {
      const std::uint64_t begin = block * block_rows_ + 2 * round;
      Delete(begin, begin + 2);
    }
    Compact();
  }
  has_ended = true;
  changes.join();
  SetRanges({1}, "aa");
  AwaitResidency();
  ExpectSameAnswers();
  ExpectSameRows();
}

}  // namespace
}  // namespace softlookup::testing
