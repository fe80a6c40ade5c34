#include "client/loadtest/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <future>
#include <numeric>
#include <string>
#include <vector>

#include "client/loadtest/kept_rows.h"
#include "softlookup/v1/lookup.pb.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup::loadtest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint32_t kKeyDim = 6;
constexpr std::uint32_t kValueDim = 3;
constexpr std::uint32_t kFilled = 1500;
constexpr std::uint32_t kAppendRows = 4;

FloatMatrix Joined(FloatMatrix a, const FloatMatrix& b) {
  a.data.insert(a.data.end(), b.data.begin(), b.data.end());
  a.rows += b.rows;
  return a;
}

class VerifierTest : public ::testing::Test {
 protected:
  // Two stores of filled rows, and in store 1 the appends of batches 5 and 2.
  VerifierTest() {
    stores_.filled_rows = kFilled;
    stores_.queries = 3;
    stores_.append_rows = kAppendRows;
    stores_.weights = 2;
    appends_ = {{.store = 1,
                 .content = 2,
                 .first_position = kFilled + kAppendRows,
                 .row_count = kAppendRows},
                {.store = 1, .content = 5, .first_position = kFilled, .row_count = kAppendRows}};
  }

  RowSource::Rows RowsOf(std::uint32_t store) const {
    RowSource::Rows rows = source_.FilledRows(store, 0, kFilled);
    if (store == 1) {
      for (const std::uint32_t batch : {5, 2}) {
        const RowSource::Rows appended = source_.AppendedRows(batch, kAppendRows);
        rows = {Joined(rows.keys, appended.keys), Joined(rows.values, appended.values)};
      }
    }
    RoundAsKept(stores_.storage, &rows.keys);
    RoundAsKept(stores_.storage, &rows.values);
    return rows;
  }

  // What a right server answers, by the definition.
  v1::LookupResponse RightAnswer(std::uint32_t store, std::uint32_t content,
                                 std::uint64_t row_count) const {
    const RowSource::Rows rows = RowsOf(store);
    const FloatMatrix queries = source_.Queries(content, stores_.queries);
    v1::LookupResponse response;
    response.set_row_count(row_count);
    response.mutable_values()->set_rows(queries.rows);
    response.mutable_values()->set_cols(kValueDim);
    std::vector<float> values;
    for (std::uint32_t q = 0; q < queries.rows; ++q) {
      std::vector<double> weights;
      double sum = 0;
      for (std::uint32_t r = 0; r < row_count; ++r) {
        double dot = 0;
        for (std::uint32_t i = 0; i < kKeyDim; ++i) {
          dot += double{queries.Row(q)[i]} * rows.keys.Row(r)[i];
        }
        weights.push_back(std::exp(dot / std::sqrt(double{kKeyDim})));
        sum += weights.back();
      }
      for (std::uint32_t i = 0; i < kValueDim; ++i) {
        double component = 0;
        for (std::uint32_t r = 0; r < row_count; ++r) {
          component += weights[r] / sum * rows.values.Row(r)[i];
        }
        values.push_back(static_cast<float>(component));
      }
      v1::QueryStats* const stats = response.add_stats();
      stats->set_log_sum_exp(std::log(sum));
      stats->set_counted_rows(row_count);
      v1::QueryWeights* const listed = response.add_weights();
      std::vector<std::uint64_t> positions(row_count);
      std::iota(positions.begin(), positions.end(), 0);
      std::partial_sort(positions.begin(), positions.begin() + 2, positions.end(),
                        [&](auto a, auto b) { return weights[a] > weights[b]; });
      positions.resize(2);
      for (const std::uint64_t position : positions) {
        listed->add_positions(position);
        listed->add_weights(weights[position] / sum);
      }
      listed->set_remaining_weight(1 - listed->weights(0) - listed->weights(1));
    }
    response.mutable_values()->set_data(values.data(), values.size() * sizeof(float));
    return response;
  }

  Evidence::Answer AnswerOf(std::uint32_t store, std::uint32_t content,
                            const v1::LookupResponse& response) const {
    const grpc::Slice slice(response.SerializeAsString());
    return {.store = store, .content = content, .bytes = grpc::ByteBuffer(&slice, 1)};
  }

  Verification Check(const std::vector<Evidence::Answer>& answers) const {
    return Verify(source_, stores_, answers, appends_);
  }

  // What is found wrong with the right answer after `spoil`.
  std::string FoundWrong(const std::function<void(v1::LookupResponse*)>& spoil) const {
    v1::LookupResponse response = RightAnswer(0, 1, kFilled);
    spoil(&response);
    const Verification found = Check({AnswerOf(0, 1, response)});
    EXPECT_EQ(found.answers, 1);
    EXPECT_EQ(found.wrong, 1);
    return found.first_wrong;
  }

  const RowSource source_{kKeyDim, kValueDim, 42};
  VerifiedStores stores_;
  std::vector<Evidence::Append> appends_;
};

TEST_F(VerifierTest, RightAnswersPassAsOfEveryAppendAndInEveryStorageType) {
  for (const auto storage :
       {v1::ELEMENT_TYPE_FLOAT32, v1::ELEMENT_TYPE_BFLOAT16, v1::ELEMENT_TYPE_INT8}) {
    stores_.storage = storage;
    std::vector<Evidence::Answer> answers = {AnswerOf(0, 3, RightAnswer(0, 3, kFilled))};
    for (const std::uint32_t appended : {0u, kAppendRows, 2 * kAppendRows}) {
      answers.push_back(AnswerOf(1, appended, RightAnswer(1, appended, kFilled + appended)));
    }
    const Verification found = Check(answers);
    EXPECT_EQ(found.answers, 4);
    EXPECT_EQ(found.wrong, 0) << found.first_wrong;
    EXPECT_EQ(found.unchecked, 0);
    EXPECT_LT(found.error_max, 1e-6);
  }
}

TEST_F(VerifierTest, RowsThatAreKeptOtherwiseAreNoticed) {
  const auto answer = AnswerOf(0, 3, RightAnswer(0, 3, kFilled));
  stores_.storage = v1::ELEMENT_TYPE_BFLOAT16;
  EXPECT_EQ(Check({answer}).wrong, 1);
}

TEST_F(VerifierTest, EveryPartOfAnAnswerIsChecked) {
  EXPECT_THAT(FoundWrong([](v1::LookupResponse* response) {
                // All queries: the checks are of some.
                auto values = *FloatMatrix::FromProto(response->values());
                for (float& value : values.data) value += 1e-4f;
                response->mutable_values()->set_data(values.data.data(), 4 * values.data.size());
              }),
              HasSubstr("values are off by "));
  EXPECT_THAT(FoundWrong([](v1::LookupResponse* response) {
                for (auto& stats : *response->mutable_stats()) {
                  stats.set_log_sum_exp(stats.log_sum_exp() + 1e-3);
                }
              }),
              HasSubstr("log_sum_exp"));
  EXPECT_THAT(FoundWrong([](v1::LookupResponse* response) {
                for (auto& stats : *response->mutable_stats()) stats.set_counted_rows(1499);
              }),
              HasSubstr("1499 rows counted, not 1500"));
  EXPECT_THAT(FoundWrong([](v1::LookupResponse* response) {
                for (auto& weights : *response->mutable_weights()) {
                  weights.set_weights(1, weights.weights(1) * 2);
                }
              }),
              HasSubstr("the weight of row "));
  EXPECT_THAT(FoundWrong([](v1::LookupResponse* response) {
                for (auto& weights : *response->mutable_weights()) {
                  weights.set_remaining_weight(0);
                }
              }),
              HasSubstr("the weights' sum"));
  EXPECT_THAT(FoundWrong([](v1::LookupResponse* response) {
                for (auto& weights : *response->mutable_weights()) weights.set_positions(1, 7);
              }),
              HasSubstr("row 7 is listed, though others weigh more"));
  EXPECT_THAT(FoundWrong([](v1::LookupResponse* response) {
                for (auto& weights : *response->mutable_weights()) {
                  weights.set_positions(1, weights.positions(0));
                }
              }),
              HasSubstr("a row is listed twice"));
  EXPECT_THAT(FoundWrong([](v1::LookupResponse* response) { response->clear_weights(); }),
              HasSubstr("no weights, which were asked for"));
  EXPECT_THAT(FoundWrong([](v1::LookupResponse* response) {
                for (auto& weights : *response->mutable_weights()) {
                  weights.mutable_positions()->RemoveLast();
                  weights.set_remaining_weight(1 - weights.weights(0));
                  weights.mutable_weights()->RemoveLast();
                }
              }),
              HasSubstr("the number of weights listed is 1, not 2"));
  EXPECT_THAT(FoundWrong([](v1::LookupResponse* response) { response->clear_values(); }),
              HasSubstr("shape"));
  EXPECT_THAT(FoundWrong([](v1::LookupResponse* response) { response->set_row_count(10); }),
              HasSubstr("saw 10 rows of 1500"));
}

TEST_F(VerifierTest, WithAMaxErrorAnswersMayBeOffByItOfTheLargestValue) {
  const RowSource::Rows rows = RowsOf(0);
  const float largest =
      std::abs(*std::max_element(rows.values.data.begin(), rows.values.data.end(),
                                 [](float a, float b) { return std::abs(a) < std::abs(b); }));
  const auto off_by = [&](double part) {
    v1::LookupResponse response = RightAnswer(0, 1, kFilled);
    auto values = *FloatMatrix::FromProto(response.values());
    for (float& value : values.data) value += static_cast<float>(part) * largest;
    response.mutable_values()->set_data(values.data.data(), 4 * values.data.size());
    for (auto& stats : *response.mutable_stats()) {
      stats.set_log_sum_exp(stats.log_sum_exp() + part);
    }
    return Check({AnswerOf(0, 1, response)});
  };
  EXPECT_EQ(off_by(9e-4).wrong, 1);
  stores_.max_error = 1e-3;
  const Verification within = off_by(9e-4);
  EXPECT_EQ(within.wrong, 0) << within.first_wrong;
  EXPECT_NEAR(within.error_max, 9e-4, 1e-6);
  EXPECT_THAT(off_by(1.1e-3).first_wrong, HasSubstr("values are off by 0.0011"));
  // A smaller one does not make the check stricter than the server's default.
  stores_.max_error = 1e-9;
  EXPECT_EQ(off_by(5e-6).wrong, 0);
  EXPECT_EQ(off_by(5e-5).wrong, 1);
}

TEST_F(VerifierTest, ValuesOfAnotherSnapshotAreWrong) {
  v1::LookupResponse response = RightAnswer(1, 1, kFilled + kAppendRows);
  response.set_row_count(kFilled + 2 * kAppendRows);
  for (auto& stats : *response.mutable_stats()) stats.set_counted_rows(response.row_count());
  EXPECT_EQ(Check({AnswerOf(1, 1, response)}).wrong, 1);
}

TEST_F(VerifierTest, BeyondAnAppendWhoseAnswerDidNotComeNothingIsChecked) {
  appends_.pop_back();
  const std::vector<Evidence::Answer> answers = {
      AnswerOf(1, 1, RightAnswer(1, 1, kFilled)),
      AnswerOf(1, 1, RightAnswer(1, 1, kFilled + 2 * kAppendRows))};
  const Verification found = Check(answers);
  EXPECT_EQ(found.answers, 1);
  EXPECT_EQ(found.wrong, 0) << found.first_wrong;
  EXPECT_EQ(found.unchecked, 1);
}

TEST_F(VerifierTest, AnAnswerThatMissesAnAcknowledgedAppendIsWrong) {
  Evidence::Answer answer = AnswerOf(1, 1, RightAnswer(1, 1, kFilled));
  EXPECT_EQ(Check({answer}).wrong, 0);
  answer.rows_min = kFilled + kAppendRows;
  const Verification found = Check({answer});
  EXPECT_EQ(found.wrong, 1);
  EXPECT_THAT(found.first_wrong, HasSubstr("saw 1500 rows of 1504"));
}

TEST_F(VerifierTest, AnInterruptionEndsIt) {
  // So many rows that it would not end by itself.
  v1::LookupResponse response = RightAnswer(0, 1, kFilled);
  stores_.filled_rows = std::uint64_t{1} << 40;
  response.set_row_count(stores_.filled_rows);
  const std::vector<Evidence::Answer> answers = {AnswerOf(0, 1, response),
                                                 AnswerOf(1, 1, response)};
  std::atomic<bool> interrupted = false;
  auto verified = std::async(std::launch::async, [&] {
    return Verify(source_, stores_, answers, appends_, &interrupted);
  });
  EXPECT_EQ(verified.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  interrupted = true;
  const Verification found = verified.get();
  EXPECT_TRUE(found.interrupted);
  EXPECT_EQ(found.answers, 0);
  EXPECT_EQ(found.unchecked, 2);
  EXPECT_EQ(found.wrong, 0) << found.first_wrong;
}

TEST(WeightsAskedForTest, AreThoseOfTheServersDefaults) {
  v1::AttentionOptions attention;
  EXPECT_EQ(WeightsAskedFor(attention), 0u);
  attention.set_weights(v1::WEIGHTS_MODE_TOP);
  EXPECT_EQ(WeightsAskedFor(attention), 10u);
  attention.set_top_weights(3);
  EXPECT_EQ(WeightsAskedFor(attention), 3u);
  attention.set_weights(v1::WEIGHTS_MODE_ALL);
  EXPECT_GT(WeightsAskedFor(attention), std::uint64_t{1} << 60);
}

TEST(EvidenceTest, KeepsABoundedNumberOfAppendsAndGoesOnCountingRows) {
  Evidence evidence(2, 3);
  for (std::uint64_t append = 0; append < 5; ++append) {
    v1::AppendResponse response;
    response.set_first_position(100 + 4 * append);
    response.set_appended_count(4);
    const grpc::Slice slice(response.SerializeAsString());
    evidence.Appended({.method = Method::kAppend, .store = 1, .content = 0, .bytes = {}},
                      grpc::ByteBuffer(&slice, 1));
  }
  EXPECT_EQ(evidence.RowsSeen(0), 0u);
  EXPECT_EQ(evidence.RowsSeen(1), 120u);
  const std::vector<Evidence::Append> appends = evidence.TakeAppends();
  ASSERT_EQ(appends.size(), 3u);
  EXPECT_EQ(appends.back().first_position, 108u);
}

TEST(KeptRowsTest, RoundsAsTheStoreDoes) {
  // Ties to even: 1 + 2^-8 lies between 1 and 1 + 2^-7.
  FloatMatrix rows{.rows = 2, .cols = 2, .data = {1 + 0x1p-8f, 1 + 0x1.8p-7f, -3, 0.1f}};
  FloatMatrix bfloat16 = rows;
  RoundAsKept(v1::ELEMENT_TYPE_BFLOAT16, &bfloat16);
  EXPECT_THAT(bfloat16.data, ElementsAre(1, 1 + 0x1p-6f, -3, 0.10009765625f));
  FloatMatrix int8{.rows = 2, .cols = 2, .data = {127, 12.4f, -63.5f, 0.3f}};
  RoundAsKept(v1::ELEMENT_TYPE_INT8, &int8);
  EXPECT_THAT(int8.data, ElementsAre(127, 12, -63.5f, 0.5f));
  FloatMatrix float32 = rows;
  RoundAsKept(v1::ELEMENT_TYPE_FLOAT32, &float32);
  EXPECT_EQ(float32.data, rows.data);
}

}  // namespace
}  // namespace softlookup::loadtest
