// What MergeAnswers() refuses and rounds. What it computes is in conformance_test.cc.
#include "softlookup/merge_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace softlookup {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The answer to one query, with two rows listed.
LookupAnswer AnswerOf(double log_sum_exp, float value) {
  LookupAnswer answer;
  answer.values = {.rows = 1, .cols = 2, .data = {value, value}};
  answer.stats.emplace_back().set_log_sum_exp(log_sum_exp);
  v1::QueryWeights& weights = answer.weights.emplace_back();
  for (const std::uint64_t position : {4, 9}) {
    weights.add_positions(position);
    weights.add_weights(0.5);
    weights.add_scores(1);
  }
  return answer;
}

struct Wrong {
  std::string message;
  std::function<void(LookupAnswer*)> make;
};

TEST(MergeAnswersTest, AnAnswerWhoseListsDoNotFitIsRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Wrong wrongs[] = {
      {"rows * cols", [](LookupAnswer* answer) { answer->values.data.pop_back(); }},
      {"rows * cols", [](LookupAnswer* answer) { answer->values.rows = 2; }},
      {"stats", [](LookupAnswer* answer) { answer->stats.clear(); }},
      {"stats", [](LookupAnswer* answer) { answer->values = {.rows = 0, .cols = 2, .data = {}}; }},
      {"stats",
       [](LookupAnswer* answer) {
         answer->values = {.rows = 2, .cols = 1, .data = {1, 1}};
         answer->stats.resize(3);
       }},
      {"multiple of the number of heads", [](LookupAnswer* answer) { answer->stats.resize(3); }},
      {"lists", [](LookupAnswer* answer) { answer->weights.emplace_back(); }},
      {"lists", [](LookupAnswer* answer) { answer->weights[0].add_positions(5); }},
      {"lists", [](LookupAnswer* answer) { answer->weights[0].add_weights(0); }},
      {"lists", [](LookupAnswer* answer) { answer->weights[0].clear_scores(); }},
      {"lists", [](LookupAnswer* answer) { answer->weights[0].add_ids(1); }},
      {"lists", [](LookupAnswer* answer) { answer->weights[0].add_has_ids(true); }},
      {"lists", [](LookupAnswer* answer) { answer->weight_parts.resize(1); }},
      {"lists", [](LookupAnswer* answer) { answer->weight_parts.resize(2); }},
      {"lists",
       [](LookupAnswer* answer) {
         answer->weights.clear();
         answer->weight_parts.resize(1);
       }},
      {"not finite", [=](LookupAnswer* answer) { answer->weights[0].set_weights(1, nan); }},
      {"not finite", [](LookupAnswer* answer) { answer->weights[0].set_weights(0, kInfinity); }},
      {"not finite", [=](LookupAnswer* answer) { answer->weights[0].set_remaining_weight(nan); }},
      {"log_sum_exp", [=](LookupAnswer* answer) { answer->stats[0].set_log_sum_exp(nan); }},
      {"MODE_SOFT", [](LookupAnswer* answer) { answer->stats[0].set_log_sum_exp(-kInfinity); }},
  };
  const LookupAnswer right = AnswerOf(0, 1);
  for (const Wrong& wrong : wrongs) {
    LookupAnswer answer = right;
    wrong.make(&answer);
    const absl::Status first = MergeAnswers(answer, right).status();
    const absl::Status last = MergeAnswers({right, right, answer}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(first)) << first << ", not " << wrong.message;
    EXPECT_TRUE(absl::IsInvalidArgument(last)) << last << ", not " << wrong.message;
    EXPECT_THAT(std::string(first.message()), AllOf(HasSubstr("[0]"), HasSubstr(wrong.message)));
    EXPECT_THAT(std::string(last.message()), AllOf(HasSubstr("[2]"), HasSubstr(wrong.message)));
    EXPECT_TRUE(absl::IsInvalidArgument(MergeAnswers({answer}).status())) << wrong.message;
  }
}

TEST(MergeAnswersTest, AnAnswerToOtherQueriesIsNamed) {
  LookupAnswer narrow = AnswerOf(0, 1);
  narrow.values = {.rows = 1, .cols = 1, .data = {1}};
  const absl::Status status = MergeAnswers({AnswerOf(0, 1), AnswerOf(1, 1), narrow}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("answers[2]"), HasSubstr("columns")));
}

TEST(MergeAnswersTest, NoAnswersAreRefused) {
  const absl::Status status = MergeAnswers(std::vector<LookupAnswer>()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

TEST(MergeAnswersTest, OneAnswerMergesToItself) {
  LookupAnswer one = AnswerOf(-3, 0.1f);
  one.stats[0].set_entropy(0.5);
  one.stats[0].set_max_logit(-4);
  one.stats[0].set_error_bound(1e-6);
  one.revision = 4;
  one.log_sum_exp_error = 1e-5;
  const absl::StatusOr<LookupAnswer> merged = MergeAnswers({one});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->values.data, one.values.data);
  EXPECT_EQ(merged->stats[0].SerializeAsString(), one.stats[0].SerializeAsString());
  EXPECT_EQ(merged->weights[0].SerializeAsString(), one.weights[0].SerializeAsString());
  EXPECT_EQ(merged->log_sum_exp_error, 1e-5);
  EXPECT_EQ(merged->revision, 0u);
}

TEST(MergeAnswersTest, ManyAnswersAreRoundedOnce) {
  // Each answer after the first moves a value by less than float32 can show.
  const int count = 1 << 12;
  std::vector<LookupAnswer> answers = {AnswerOf(0, 1)};
  for (int i = 0; i < count; ++i) answers.push_back(AnswerOf(std::log(1e-8), 2));
  for (LookupAnswer& answer : answers) answer.weights.clear();
  const absl::StatusOr<LookupAnswer> merged = MergeAnswers(answers);
  ASSERT_TRUE(merged.ok()) << merged.status();
  const double share = count * 1e-8 / (1 + count * 1e-8);
  EXPECT_EQ(merged->values.data[0], static_cast<float>(1 + share));
  EXPECT_EQ(merged->parts, count + 1u);
}

TEST(MergeAnswersTest, TheLargestFloatsDoNotOverflow) {
  const float largest = std::numeric_limits<float>::max();
  for (const double other : {0.0, 0.3, 1.7}) {
    const auto merged = MergeAnswers(AnswerOf(0.1, largest), AnswerOf(other, largest));
    ASSERT_TRUE(merged.ok()) << merged.status();
    EXPECT_THAT(merged->values.data, ElementsAre(largest, largest));
  }
}

TEST(MergeAnswersTest, MergedAnswersKeepTheirPartsWhenTheyAreMergedAgain) {
  const auto left = MergeAnswers(AnswerOf(0, 1), AnswerOf(1, 1));
  const auto right = MergeAnswers(AnswerOf(2, 1), AnswerOf(3, 1));
  ASSERT_TRUE(left.ok() && right.ok());
  const auto merged = MergeAnswers(*left, *right);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->parts, 4u);
  EXPECT_THAT(merged->weight_parts, ElementsAre(ElementsAre(3, 3, 2, 2, 1, 1, 0, 0)));
  EXPECT_THAT(merged->weights[0].positions(), ElementsAre(4, 9, 4, 9, 4, 9, 4, 9));
  EXPECT_THAT(merged->weights[0].ids(), IsEmpty());
}

}  // namespace
}  // namespace softlookup
