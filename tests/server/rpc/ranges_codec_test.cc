#include "server/rpc/ranges_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;
using ::testing::ElementsAre;

PartialLookup OneLookup() {
  const CountedRow best{.position = 9, .logit = 2, .score = 4};
  const CountedRow other{.position = 4, .logit = 1, .score = 2};
  return {.shape = {.query_count = 1,
                    .num_heads = 2,
                    .value_dim = 4,
                    .weights = WeightsMode::kTop,
                    .top_weights = 3,
                    .error_max = 0.25,
                    .memory = MemoryRow{.position = 2, .multiplicity = 3}},
          .attended = {.begin = 3, .end = 12},
          .incarnation = 8,
          .revision = 5,
          .row_count = 14,
          .range = {.begin = 2},
          .answers = {{.state = {.max_logit = 2,
                                 .weight = 1.5,
                                 .weighted = -0.5,
                                 .counted_rows = 3,
                                 .max_position = 9,
                                 .summed_rows = 2,
                                 .left_out = 1e-7},
                       .sum = {1e200, -2},
                       .rows = {.best = {best, other},
                                .first = {other, best},
                                .unranked_memory = CountedRow{.position = 2, .logit = -1}},
                       .arithmetic_error = 1e-6},
                      {}},
          .ids = {{.position = 4, .id = 70}, {.position = 9, .id = 3}}};
}

TEST(RangesCodecTest, APartialLookupComesBackAsItWas) {
  const PartialLookup lookup = OneLookup();
  const absl::StatusOr<PartialLookup> decoded = DecodePartialLookup(EncodePartialLookup(lookup));
  ASSERT_THAT(decoded, IsOk());
  EXPECT_EQ(decoded->shape, lookup.shape);
  EXPECT_EQ(decoded->attended, lookup.attended);
  EXPECT_EQ(decoded->range, lookup.range);
  EXPECT_EQ(decoded->incarnation, 8u);
  EXPECT_EQ(decoded->revision, 5u);
  EXPECT_EQ(decoded->row_count, 14u);
  EXPECT_EQ(decoded->ids, lookup.ids);
  ASSERT_EQ(decoded->answers.size(), 2u);
  const PartialAnswer &answer = decoded->answers[0], &sent = lookup.answers[0];
  EXPECT_EQ(answer.state.max_logit, 2);
  EXPECT_EQ(answer.state.weight, 1.5);
  EXPECT_EQ(answer.state.weighted, -0.5);
  EXPECT_EQ(answer.state.counted_rows, 3u);
  EXPECT_EQ(answer.state.max_position, 9u);
  EXPECT_EQ(answer.state.summed_rows, 2u);
  EXPECT_EQ(answer.state.left_out, 1e-7);
  EXPECT_EQ(answer.sum, sent.sum);
  EXPECT_EQ(answer.rows.best, sent.rows.best);
  EXPECT_EQ(answer.rows.first, sent.rows.first);
  EXPECT_EQ(answer.rows.unranked_memory, sent.rows.unranked_memory);
  EXPECT_EQ(answer.arithmetic_error, 1e-6);
  const PartialAnswer& none = decoded->answers[1];
  EXPECT_EQ(none.state.max_logit, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(none.state.counted_rows, 0u);
}

TEST(RangesCodecTest, ScoresAreSentOnlyForLists) {
  PartialLookup lookup = OneLookup();
  lookup.shape.weights = WeightsMode::kNone;
  const absl::StatusOr<PartialLookup> decoded = DecodePartialLookup(EncodePartialLookup(lookup));
  ASSERT_THAT(decoded, IsOk());
  EXPECT_EQ(decoded->answers[0].rows.best[0].logit, 2);
  EXPECT_EQ(decoded->answers[0].rows.best[0].score, 0);
}

// A plain answer costs the bytes of its values, and some more. What is as in most lookups is not
// sent.
TEST(RangesCodecTest, APlainAnswerTakes4BytesAComponent) {
  const PartialLookup lookup{.shape = {.query_count = 1, .value_dim = 128},
                             .attended = {.end = 1'000'000},
                             .revision = 5,
                             .row_count = 1'000'000,
                             .range = {.begin = 500'000},
                             .answers = {{.state = {.max_logit = 2.25,
                                                    .weight = 1234.5678,
                                                    .weighted = -2345.6789,
                                                    .counted_rows = 500'000,
                                                    .summed_rows = 500'000},
                                          .sum = std::vector<double>(128, 0.1),
                                          .arithmetic_error = 1e-5}}};
  const cluster::v1::PartialLookup message = EncodePartialLookup(lookup);
  EXPECT_LE(message.ByteSizeLong(), 128 * 4 + 80);
  const absl::StatusOr<PartialLookup> decoded = DecodePartialLookup(message);
  ASSERT_THAT(decoded, IsOk());
  EXPECT_EQ(decoded->shape, lookup.shape);
  EXPECT_EQ(decoded->attended, lookup.attended);
  EXPECT_EQ(decoded->answers[0].state.summed_rows, 500'000u);
}

TEST(RangesCodecTest, MeansAreSentAsFloat32WhereThatIsGoodEnough) {
  const auto sum_after = [](Mode mode, double weight, const std::vector<double>& sum) {
    PartialLookup lookup = OneLookup();
    lookup.shape.mode = mode;
    lookup.answers[0].state.weight = weight;
    lookup.answers[0].rows = {};
    lookup.answers[0].sum = sum;
    const auto decoded = DecodePartialLookup(EncodePartialLookup(lookup));
    EXPECT_THAT(decoded, IsOk());
    return decoded->answers[0].sum;
  };
  constexpr double kLong = 1 + 0x1p-30;
  EXPECT_THAT(sum_after(Mode::kHard, 0, {kLong, -0x1p126}), ElementsAre(1, -0x1p126));
  EXPECT_THAT(sum_after(Mode::kSoft, 3, {3 * kLong, -3 * 0x1p125}), ElementsAre(3, -3 * 0x1p125));
  EXPECT_THAT(sum_after(Mode::kSoft, 3, {0, 0}), ElementsAre(0, 0));
  // Too large, and too small.
  EXPECT_THAT(sum_after(Mode::kSoft, 1, {kLong, 1e39}), ElementsAre(kLong, 1e39));
  EXPECT_THAT(sum_after(Mode::kSoft, 1, {0x1p-140 * kLong, 0}), ElementsAre(0x1p-140 * kLong, 0));
  EXPECT_THAT(sum_after(Mode::kLinear, 3, {kLong, -kLong}), ElementsAre(kLong, -kLong));
}

TEST(RangesCodecTest, SumsAndTheirRequestsComeBackAsTheyWere) {
  const RowSumsRequest request{
      .rows = {{{.position = 9, .weight = 1}, {.position = 4, .weight = -2}}, {}},
      .id_positions = {4, 9}};
  const auto asked = DecodeRowSumsRequest(EncodeRowSumsRequest(request));
  ASSERT_THAT(asked, IsOk());
  EXPECT_EQ(asked->rows, request.rows);
  EXPECT_EQ(asked->id_positions, request.id_positions);
  const RowSums sums{.sums = {1, -2}, .ids = {{.position = 4, .id = 70}}};
  const auto answered = DecodeRowSums(EncodeRowSums(sums));
  ASSERT_THAT(answered, IsOk());
  EXPECT_THAT(answered->sums, ElementsAre(1, -2));
  EXPECT_EQ(answered->ids, sums.ids);
}

TEST(RangesCodecTest, WhatNoRangeAnswersIsRefused) {
  const auto reason_after = [](auto spoil) {
    cluster::v1::PartialLookup message = EncodePartialLookup(OneLookup());
    spoil(message);
    return ReasonOf(DecodePartialLookup(message).status());
  };
  using Message = cluster::v1::PartialLookup;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(reason_after([](Message&) {}), "");
  const std::string refused = "MALFORMED_MESSAGE";
  EXPECT_EQ(reason_after([](Message& m) { m.mutable_shape()->set_num_heads(0); }), refused);
  EXPECT_EQ(reason_after([](Message& m) { m.mutable_shape()->set_num_heads(3); }), refused);
  EXPECT_EQ(reason_after([](Message& m) { m.mutable_shape()->set_value_dim(1 << 30); }), refused);
  EXPECT_EQ(reason_after([](Message& m) { m.mutable_shape()->set_query_count(2); }), refused);
  EXPECT_EQ(reason_after([](Message& m) { m.mutable_shape()->set_mode(0); }), refused);
  EXPECT_EQ(reason_after([](Message& m) { m.mutable_shape()->set_weights(4); }), refused);
  EXPECT_EQ(reason_after([](Message& m) { m.mutable_shape()->set_error_max(2); }), refused);
  EXPECT_EQ(
      reason_after([](Message& m) { m.mutable_shape()->mutable_memory()->set_multiplicity(0.5); }),
      refused);
  const auto reason_of_answer = [&](auto spoil) {
    return reason_after([&](Message& m) { spoil(*m.mutable_answers(0)); });
  };
  using Answer = cluster::v1::PartialAnswer;
  EXPECT_EQ(reason_of_answer([](Answer& a) { a.set_weight(0.5); }), refused);
  EXPECT_EQ(reason_of_answer([](Answer& a) { a.set_weight(kNan); }), refused);
  EXPECT_EQ(reason_of_answer([](Answer& a) { a.set_weighted(1); }), refused);
  EXPECT_EQ(reason_of_answer([](Answer& a) { a.set_max_logit(-1e300); }), refused);
  EXPECT_EQ(reason_of_answer([](Answer& a) { a.set_left_out(-1); }), refused);
  EXPECT_EQ(reason_of_answer([](Answer& a) { a.set_arithmetic_error(kNan); }), refused);
  EXPECT_EQ(reason_of_answer([](Answer& a) { a.set_skipped_rows(4); }), refused);
  EXPECT_EQ(reason_of_answer([](Answer& a) { a.set_sum("1234567"); }), refused);
  EXPECT_EQ(reason_of_answer([](Answer& a) { a.set_mean("12345678"); }), refused);
  EXPECT_EQ(reason_of_answer([](Answer& a) {
              a.clear_sum();
              a.set_mean("1234567");
            }),
            refused);
  EXPECT_EQ(reason_of_answer([](Answer& a) {
              a.clear_sum();
              a.set_mean(std::string(8, '\xff'));
            }),
            refused);
  EXPECT_EQ(reason_of_answer([](Answer& a) { a.set_sum(std::string(8, '\xff')); }), refused);
  EXPECT_EQ(reason_of_answer([](Answer& a) { a.mutable_best()->add_positions(3); }), refused);
  EXPECT_EQ(reason_of_answer([](Answer& a) { a.mutable_first()->clear_scores(); }), refused);
  EXPECT_EQ(reason_of_answer([](Answer& a) { *a.mutable_unranked_memory() = a.best(); }), refused);
  EXPECT_EQ(reason_after([](Message& m) { m.mutable_ids()->add_ids(3); }), refused);
  EXPECT_EQ(reason_after([](Message& m) { m.mutable_ids()->set_positions(1, 4); }), refused);

  cluster::v1::RowSumsRequest request;
  request.add_rows()->add_positions(4);
  EXPECT_EQ(ReasonOf(DecodeRowSumsRequest(request).status()), refused);
}

}  // namespace
}  // namespace softlookup::server
