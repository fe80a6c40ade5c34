// Parts of lookups, asked of an engine as a router asks the replicas of a group.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/store/block_shape.h"
#include "softlookup/engine.h"
#include "softlookup/partial_lookup.h"
#include "tests/core/attention/merged_parts.h"
#include "tests/core/engine/engine_fixture.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/part_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {
namespace {

constexpr std::int64_t kPartKeyDim = 96, kPartValueDim = 160;
constexpr std::int64_t kPartHeads = 2;

std::uint64_t SumOfCounts(const HistogramCounts& counts) {
  return std::accumulate(counts.counts.begin(), counts.counts.end(), std::uint64_t{0});
}

class LookupPartsTest : public ::testing::Test {
 protected:
  LookupPartsTest() { MakeStore(); }

  void MakeStore() {
    EXPECT_THAT(engine_->CreateStore(Config("s")), IsOk());
    Append("s", rows_, 1);
    RowFilter some;
    some.begin = 100;
    some.end = 150;
    EXPECT_THAT(engine_->DeleteRows("s", some), IsOk());
  }

  static StoreConfig Config(const std::string& name) {
    return {
        .name = name, .key_dim = kPartKeyDim, .value_dim = kPartValueDim, .num_heads = kPartHeads};
  }

  std::uint64_t Append(const std::string& store, std::int64_t count, std::uint64_t seed) {
    const std::vector<float> keys = NormalFloats(count * kPartKeyDim, seed, 0.4);
    const std::vector<float> values = NormalFloats(count * kPartValueDim, seed + 1);
    std::vector<std::uint64_t> ids(static_cast<std::size_t>(count));
    std::iota(ids.begin(), ids.end(), 1'000'000 * seed);
    const auto result = AppendAndWait(
        *engine_, {.store = store,
                   .keys = {.data = keys.data(), .rows = count, .cols = kPartKeyDim},
                   .values = {.data = values.data(), .rows = count, .cols = kPartValueDim},
                   .ids = ids});
    EXPECT_THAT(result, IsOk());
    return result.ok() ? result->revision : 0;
  }

  // Appends rows, deletes all rows of a block, and drops them.
  void Write() {
    Append("s", 30, ++writes_ + 10);
    RowFilter block;
    block.begin = writes_ % 9 * static_cast<std::uint64_t>(block_rows_);
    block.end = *block.begin + static_cast<std::uint64_t>(block_rows_);
    ASSERT_THAT(engine_->DeleteRows("s", block), IsOk());
    ASSERT_THAT(engine_->CompactStore({.store = "s", .end_memories = true}, CancelToken()), IsOk());
  }

  LookupRequest Request(const AttentionOptions& options = {}, std::int64_t queries = 2) const {
    return {.store = "s",
            .queries = {.data = queries_.data(), .rows = queries, .cols = kPartKeyDim},
            .options = options};
  }

  // Returns `count` ranges of whole blocks, of which the last has no end.
  std::vector<PositionRange> Ranges(std::uint64_t count) const {
    std::vector<std::uint64_t> cuts;
    for (std::uint64_t i = 1; i < count; ++i) {
      cuts.push_back(11 * i / count * static_cast<std::uint64_t>(block_rows_));
    }
    return RangesBetween(cuts);
  }

  // Asks each range for its part as of `revision`, and merges the parts. Calls `between` before
  // each part but the first.
  absl::StatusOr<LookupResult> AskInParts(const LookupRequest& request, std::uint64_t revision,
                                          const std::vector<PositionRange>& ranges,
                                          const std::function<void()>& between) {
    std::vector<PartialLookup> partials;
    std::vector<LookupPart> parts;
    for (const PositionRange& range : ranges) {
      if (!parts.empty()) between();
      parts.push_back({.range = range, .revision = revision});
      SOFTLOOKUP_ASSIGN_OR_RETURN(partials.emplace_back(),
                                  AnswerPartAndWait(*engine_, request, parts.back()));
      EXPECT_EQ(partials.back().revision, revision);
    }
    SOFTLOOKUP_ASSIGN_OR_RETURN(
        MergedLookup merged,
        MergedLookup::Merge(std::move(partials), engine_->limits().message_bytes_max,
                            [] { return true; }));
    std::vector<RowSums> sums(ranges.size());
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const RowSumsRequest& asked = merged.requests()[i];
      if (asked.empty()) continue;
      between();
      SOFTLOOKUP_ASSIGN_OR_RETURN(sums[i], SumRowsAndWait(*engine_, request, parts[i], asked));
    }
    return merged.Finish(sums, [] { return true; });
  }

  static AttentionAnswer AnswerOf(LookupResult result) {
    return {.values = std::move(result.values),
            .stats = std::move(result.stats),
            .weights = std::move(result.weights)};
  }

  const std::int64_t block_rows_ = BlockRows(PanelShapeOf(Config("s")));
  const std::int64_t rows_ = 11 * block_rows_ + 37;
  const std::vector<float> queries_ = NormalFloats(64 * kPartKeyDim, 5);
  const std::unique_ptr<Engine> engine_ =
      Engine::Create({.limits = {.lookup_wait_max = absl::InfiniteDuration()}, .thread_count = 2});
  std::uint64_t writes_ = 0;
};

TEST_F(LookupPartsTest, PartsOfOneRevisionMakeTheAnswerOfOneMachine) {
  const std::vector<AttentionOptions> all = {
      {},
      {.mode = Mode::kHard},
      {.mode = Mode::kLinear, .weights = WeightsMode::kTop},
      {.weights = WeightsMode::kTop, .top_weights = 7},
      {.top_k = 90, .weights = WeightsMode::kTop},
      {.weights = WeightsMode::kAll, .max_error = 0},
  };
  for (const AttentionOptions& options : all) {
    ASSERT_THAT(engine_->DeleteStore("s"), IsOk());
    MakeStore();
    ASSERT_THAT(AnswerPartAndWait(*engine_, Request(), {}), IsOk()) << "it is asked for parts now";
    for (const std::uint64_t count : {7, 3, 2, 1}) {
      SCOPED_TRACE(absl::StrCat("mode ", static_cast<int>(options.mode), ", top_k ", options.top_k,
                                ", ", count, " ranges"));
      LookupRequest request = Request(options);
      if (count == 3) request.filter.last = static_cast<std::uint64_t>(5 * block_rows_);
      absl::StatusOr<LookupResult> expected, merged;
      do {
        expected = LookupAndWait(*engine_, request);
        ASSERT_THAT(expected, IsOk());
        merged = AskInParts(request, expected->revision, Ranges(count), [this] { Write(); });
        // On a slow machine the snapshot can be gone. A router, too, asks again then.
      } while (ReasonOf(merged.status()) == kSnapshotGone.name);
      ASSERT_THAT(merged, IsOk());
      EXPECT_EQ(merged->revision, expected->revision);
      EXPECT_EQ(merged->row_count, expected->row_count);
      ASSERT_NO_FATAL_FAILURE(
          ExpectSameAnswer(*merged, AnswerOf(*expected), {.value_size = 4, .weight_size = 100}));
      for (std::size_t q = 0; q < merged->weights.size(); ++q) {
        for (std::size_t i = 0; i < merged->weights[q].rows.size(); ++i) {
          ASSERT_EQ(merged->weights[q].rows[i].id, expected->weights[q].rows[i].id);
        }
      }
      if (count == 1) {
        ASSERT_NO_FATAL_FAILURE(ExpectSameBits(*merged, AnswerOf(*expected)));
      }
    }
  }
}

TEST_F(LookupPartsTest, WithoutARevisionAPartIsAsOfTheNewest) {
  const auto part = AnswerPartAndWait(*engine_, Request(), {.range = {.begin = 5}});
  ASSERT_THAT(part, IsOk());
  EXPECT_EQ(part->revision, engine_->GetStore("s")->revision);
  EXPECT_EQ(part->row_count, static_cast<std::uint64_t>(rows_));
  EXPECT_EQ(part->range, PositionRange{.begin = 5});
  EXPECT_EQ(part->incarnation, engine_->GetMemory("s", "", {}, {})->incarnation);
}

TEST_F(LookupPartsTest, ARevisionThatIsNotKeptIsGone) {
  const std::uint64_t revision = engine_->GetStore("s")->revision;
  const auto reason_as_of = [&](std::uint64_t asked) {
    const LookupPart part{.revision = asked};
    const absl::Status status = AnswerPartAndWait(*engine_, Request(), part).status();
    EXPECT_EQ(ReasonOf(SumRowsAndWait(*engine_, Request(), part, {}).status()), ReasonOf(status));
    return ReasonOf(status);
  };
  EXPECT_EQ(reason_as_of(revision - 1), "SNAPSHOT_GONE");
  EXPECT_EQ(reason_as_of(revision), "");
  // It was asked for parts, so that the next snapshots are kept.
  Append("s", 1, 50);
  Append("s", 1, 51);
  EXPECT_EQ(reason_as_of(revision), "");
  EXPECT_EQ(reason_as_of(revision + 1), "");
  EXPECT_EQ(reason_as_of(revision - 1), "SNAPSHOT_GONE");
}

TEST_F(LookupPartsTest, APartThatMustBeOfTheNewestRevisionIsGoneAfterAWrite) {
  const std::uint64_t revision = engine_->GetStore("s")->revision;
  const auto reason_as_of = [&](std::uint64_t asked) {
    const auto part =
        AnswerPartAndWait(*engine_, Request(), {.revision = asked, .must_be_newest = true});
    if (part.ok()) EXPECT_EQ(part->revision, asked);
    return ReasonOf(part.status());
  };
  EXPECT_EQ(reason_as_of(revision), "");
  Append("s", 1, 50);
  // Its snapshot is kept.
  EXPECT_THAT(AnswerPartAndWait(*engine_, Request(), {.revision = revision}), IsOk());
  EXPECT_EQ(reason_as_of(revision), "SNAPSHOT_GONE");
  EXPECT_EQ(reason_as_of(revision + 1), "");
}

TEST_F(LookupPartsTest, APartOfAnotherStoreOfTheNameIsGone) {
  const std::uint64_t incarnation = engine_->GetMemory("s", "", {}, {})->incarnation;
  ASSERT_THAT(AnswerPartAndWait(*engine_, Request(), {.incarnation = incarnation}), IsOk());
  ASSERT_THAT(engine_->DeleteStore("s"), IsOk());
  ASSERT_THAT(engine_->CreateStore(Config("s")), IsOk());
  const absl::Status gone =
      AnswerPartAndWait(*engine_, Request(), {.incarnation = incarnation}).status();
  EXPECT_EQ(ReasonOf(gone), "SNAPSHOT_GONE");
  EXPECT_THAT(MetadataOf(gone), ::testing::Contains(::testing::Pair("revision", "1")));
  EXPECT_EQ(
      ReasonOf(SumRowsAndWait(*engine_, Request(), {.revision = 1, .incarnation = incarnation}, {})
                   .status()),
      "SNAPSHOT_GONE");
}

TEST_F(LookupPartsTest, APartWaitsForItsRevisionAndIsAsOfJustThat) {
  const std::uint64_t revision = engine_->GetStore("s")->revision + 2;
  const LookupRequest request = Request();
  absl::StatusOr<PartialLookup> partial;
  absl::StatusOr<RowSums> sums;
  absl::BlockingCounter answered(2);
  const LookupPart part{.revision = revision};
  engine_->AnswerPart(request, part, std::make_shared<CancelToken>(), [&](auto result) {
    partial = std::move(result);
    answered.DecrementCount();
  });
  engine_->SumRowsOfPart(request, part, {.id_positions = {3}}, std::make_shared<CancelToken>(),
                         [&](auto result) {
                           sums = std::move(result);
                           answered.DecrementCount();
                         });
  for (std::uint64_t i = 0; i < 4; ++i) Append("s", 1, 60 + i);
  answered.Wait();
  ASSERT_THAT(partial, IsOk());
  EXPECT_EQ(partial->revision, revision);
  EXPECT_EQ(partial->row_count, static_cast<std::uint64_t>(rows_) + 2);
  ASSERT_THAT(sums, IsOk());
  EXPECT_THAT(sums->ids, ::testing::ElementsAre(PositionedId{.position = 3, .id = 1'000'003}));
}

TEST_F(LookupPartsTest, CancellationEndsEveryWait) {
  const LookupPart later{.revision = 1'000};
  const auto cancel = std::make_shared<CancelToken>(), other = std::make_shared<CancelToken>();
  std::vector<absl::Status> ended;
  engine_->AnswerPart(Request(), later, cancel,
                      [&](const auto& result) { ended.push_back(result.status()); });
  engine_->SumRowsOfPart(Request(), later, {}, other,
                         [&](const auto& result) { ended.push_back(result.status()); });
  EXPECT_THAT(ended, ::testing::IsEmpty());
  cancel->Cancel();
  other->Cancel();
  ASSERT_THAT(ended, ::testing::SizeIs(2));
  for (const absl::Status& status : ended) EXPECT_EQ(ReasonOf(status), "CANCELLED");
  EXPECT_EQ(ReasonOf(AnswerPartAndWait(*engine_, Request({}, 64), {}, cancel).status()),
            "CANCELLED");
  const std::uint64_t revision = engine_->GetStore("s")->revision;
  EXPECT_EQ(ReasonOf(SumRowsAndWait(*engine_, Request(), {.revision = revision},
                                    {.id_positions = {1}}, cancel)
                         .status()),
            "CANCELLED");
}

TEST_F(LookupPartsTest, APartThatIsNoneIsRefused) {
  const auto field_of = [](const absl::Status& status) {
    const ErrorMetadata metadata = MetadataOf(status);
    return metadata.empty() ? std::string(status.message()) : metadata.front().second;
  };
  EXPECT_EQ(
      field_of(AnswerPartAndWait(*engine_, Request(), {.range = {.begin = 2, .end = 1}}).status()),
      "range");
  EXPECT_EQ(field_of(SumRowsAndWait(*engine_, Request(), {}, {}).status()), "revision");
  LookupRequest elsewhere = Request();
  elsewhere.store = "t";
  EXPECT_EQ(ReasonOf(AnswerPartAndWait(*engine_, elsewhere, {}).status()), "STORE_NOT_FOUND");
  EXPECT_EQ(ReasonOf(SumRowsAndWait(*engine_, elsewhere, {.revision = 1}, {}).status()),
            "STORE_NOT_FOUND");
}

// An answer to so many queries would not fit, and neither do its sums.
TEST_F(LookupPartsTest, SumsBeyondTheLimitOfAnAnswerAreRefused) {
  const auto engine = Engine::Create({.limits = {.message_bytes_max = 40'000}});
  ASSERT_THAT(engine->CreateStore(Config("s")), IsOk());
  RowSumsRequest rows;
  rows.rows.resize(64 * kPartHeads);
  EXPECT_EQ(ReasonOf(SumRowsAndWait(*engine, Request({}, 64), {.revision = 1}, rows).status()),
            "ANSWER_TOO_LARGE");
  EXPECT_EQ(ReasonOf(AnswerPartAndWait(*engine, Request({}, 64), {}).status()), "ANSWER_TOO_LARGE");
}

// Parts wait, share passes and are refused as lookups do.
TEST(LookupPartsLoadTest, PartsOfSeveralLookupsShareAPass) {
  const std::unique_ptr<Engine> engine = Engine::Create(
      {.limits = {.waiting_jobs_max = 4, .lookup_wait_max = absl::InfiniteDuration()},
       .thread_count = 1});
  constexpr std::int64_t kDim = 64, kRows = 20'000;
  const std::vector<float> floats = NormalFloats(kRows * kDim, 1);
  const MatrixView rows{floats.data(), kRows, kDim};
  ASSERT_THAT(engine->CreateStore({.name = "s", .key_dim = kDim, .value_dim = kDim}), IsOk());
  ASSERT_THAT(AppendAndWait(*engine, {.store = "s", .keys = rows, .values = rows}), IsOk());
  const LookupRequest request{.store = "s", .queries = {floats.data(), 8, kDim}};
  absl::BlockingCounter answered(4);
  std::uint64_t passes = 0;
  {
    const BusyPool busy(*engine);
    passes = SumOfCounts(engine->stats().pass_lookups);
    for (std::uint64_t i = 0; i < 4; ++i) {
      const LookupPart part{.range = {.begin = i * 5'000, .end = (i + 1) * 5'000}};
      engine->AnswerPart(request, part, std::make_shared<CancelToken>(), [&](const auto& result) {
        EXPECT_THAT(result, IsOk());
        answered.DecrementCount();
      });
    }
    EXPECT_EQ(engine->stats().waiting_lookups, 4);
    EXPECT_EQ(ReasonOf(AnswerPartAndWait(*engine, request, {}).status()), "QUEUE_FULL");
  }
  answered.Wait();
  EXPECT_EQ(SumOfCounts(engine->stats().pass_lookups), passes + 1);
  EXPECT_GE(engine->stats().summed_rows, 1u);
}

}  // namespace
}  // namespace softlookup::testing
