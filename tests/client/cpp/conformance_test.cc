// The cases of tests/conformance, which every client must pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/resend_queue.h"
#include "client/cpp/retry.h"
#include "google/rpc/error_details.pb.h"
#include "softlookup/error_details.h"
#include "softlookup/merge_answers.h"

namespace softlookup::client_internal {
namespace {

using nlohmann::json;
using ::testing::DoubleNear;
using ::testing::ElementsAreArray;
using ::testing::Pointwise;

json ReadCases(const std::string& name) {
  std::ifstream file(std::string(SOFTLOOKUP_CONFORMANCE_DIR) + "/" + name);
  return json::parse(file);
}

// gRPC's word for the code of `status`.
std::string CodeOf(const absl::Status& status) { return absl::StatusCodeToString(status.code()); }

absl::Status StatusOf(const json& item) {
  absl::StatusCode code = absl::StatusCode::kOk;
  for (int number = 0; number <= 16; ++number) {
    const auto each = static_cast<absl::StatusCode>(number);
    if (absl::StatusCodeToString(each) == item.at("code").get<std::string>()) code = each;
  }
  absl::Status status(code, item.value("message", ""));
  if (item.contains("reason")) {
    google::rpc::ErrorInfo info;
    info.set_reason(item["reason"].get<std::string>());
    status.SetPayload("type.googleapis.com/google.rpc.ErrorInfo",
                      absl::Cord(info.SerializeAsString()));
  }
  return status;
}

TEST(ConformanceTest, TheDetailsOfAnErrorAreReadAsTheFileSays) {
  const json file = ReadCases("errors.json");
  for (const json& item : file.at("cases")) {
    SCOPED_TRACE(item.at("name").get<std::string>());
    const std::string details = absl::HexStringToBytes(item.at("details").get<std::string>());
    const absl::Status status =
        FromGrpcStatus(grpc::Status(grpc::StatusCode::UNAVAILABLE, "failed", details));
    using Metadata = std::map<std::string, std::string>;
    EXPECT_EQ(ErrorReason(status), item.at("reason").get<std::string>());
    EXPECT_EQ(ErrorMetadata(status), item.at("metadata").get<Metadata>());
    const std::optional<absl::Duration> delay = RetryDelay(status);
    const json& expected = item.at("retry_after");
    ASSERT_EQ(delay.has_value(), !expected.is_null());
    if (delay.has_value()) {
      EXPECT_EQ(absl::ToDoubleSeconds(*delay), expected.get<double>());
    }
  }
}

TEST(ConformanceTest, EveryFailureIsRetriedOrNotAsTheFileSays) {
  const json file = ReadCases("retries.json");
  const json& given = file.at("options");
  const RetryOptions options = {
      .attempts_max = given.at("attempts_max").get<int>(),
      .backoff_min = absl::Seconds(given.at("backoff_min").get<double>()),
      .backoff_max = absl::Seconds(given.at("backoff_max").get<double>())};
  for (const json& item : file.at("cases")) {
    SCOPED_TRACE(item.at("name").get<std::string>());
    const absl::Status status = StatusOf(item);
    ASSERT_FALSE(status.ok());
    std::optional<absl::Duration> server_delay;
    if (item.contains("retry_after")) {
      const json& after = item["retry_after"];
      server_delay =
          after.is_string() ? absl::InfiniteDuration() : absl::Seconds(after.get<double>());
    }
    for (const int jitter : {0, 1}) {
      const auto delay =
          DelayBeforeRetry(options, item.at("attempts").get<int>(), status, server_delay, jitter);
      const json& expected = item.at("delay");
      ASSERT_EQ(delay.has_value(), !expected.is_null());
      if (delay.has_value()) {
        EXPECT_NEAR(absl::ToDoubleSeconds(*delay), expected.at(jitter).get<double>(), 1e-6);
      }
    }
  }
}

// Makes one step of a case of writers.json. Returns the error of the step, if it has one.
absl::Status MakeStep(const json& step, ResendQueue* queue) {
  if (step.contains("push")) {
    v1::AppendRequest request;
    request.mutable_keys()->set_rows(step["push"].get<std::uint32_t>());
    return queue->Push(std::move(request));
  }
  if (step.contains("rewind")) return queue->Rewind(step["rewind"].get<std::uint64_t>());
  if (step.contains("send")) {
    const ResendQueue::Request request = queue->NextToSend();
    EXPECT_EQ(request == nullptr, step["send"].is_null());
    if (request != nullptr && !step["send"].is_null()) {
      EXPECT_EQ(request->sequence(), step["send"].get<std::uint64_t>());
    }
    return absl::OkStatus();
  }
  const json& answer = step.at("answer");
  v1::AppendResponse response;
  response.set_sequence(answer.at("sequence").get<std::uint64_t>());
  response.set_duplicate(answer.value("duplicate", false));
  response.set_appended_count(answer.value("appended", 0u));
  response.set_row_count(answer.value("row_count", std::uint64_t{0}));
  response.set_revision(answer.value("revision", std::uint64_t{0}));
  absl::Status status = queue->Acknowledge(response);
  if (status.ok()) {
    EXPECT_EQ(queue->acknowledged().row_count, response.row_count());
    EXPECT_EQ(queue->acknowledged().revision, response.revision());
  }
  return status;
}

TEST(ConformanceTest, AWriterDoesWhatTheFileSays) {
  const json file = ReadCases("writers.json");
  for (const json& item : file.at("cases")) {
    SCOPED_TRACE(item.at("name").get<std::string>());
    ResendQueue queue(item.at("last_sequence").get<std::uint64_t>());
    for (const json& step : item.at("steps")) {
      EXPECT_EQ(CodeOf(MakeStep(step, &queue)), step.value("error", "OK")) << step;
    }
    EXPECT_EQ(queue.size(), item.at("unacknowledged").get<std::size_t>());
    EXPECT_EQ(queue.acknowledged().acknowledged_rows, item.at("rows").get<std::uint64_t>());
  }
}

// A number of merge.json, where words stand for those that JSON has not.
double NumberOf(const json& number) {
  return number.is_string() ? std::stod(number.get<std::string>()) : number.get<double>();
}

v1::QueryStats StatsOf(const json& answer, std::size_t i) {
  v1::QueryStats stats;
  stats.set_log_sum_exp(NumberOf(answer.at("log_sum_exp").at(i)));
  stats.set_max_logit(NumberOf(answer.at("max_logit").at(i)));
  stats.set_entropy(NumberOf(answer.at("entropy").at(i)));
  stats.set_error_bound(NumberOf(answer.at("error_bound").at(i)));
  stats.set_counted_rows(answer.at("counted_rows").at(i).get<std::uint64_t>());
  stats.set_summed_rows(answer.at("summed_rows").at(i).get<std::uint64_t>());
  stats.set_empty(answer.at("empty").at(i).get<bool>());
  return stats;
}

// As the server sends a list of weights: `ids` and `has_ids` are empty where they say nothing.
v1::QueryWeights WeightsOf(const json& list) {
  v1::QueryWeights weights;
  bool any_id = false;
  bool any_lacks_id = false;
  for (const json& id : list.at("ids")) (id.is_null() ? any_lacks_id : any_id) = true;
  for (std::size_t i = 0; i < list.at("positions").size(); ++i) {
    const json& id = list["ids"].at(i);
    weights.add_positions(list["positions"][i].get<std::uint64_t>());
    if (any_id) weights.add_ids(id.is_null() ? 0 : id.get<std::uint64_t>());
    if (any_id && any_lacks_id) weights.add_has_ids(!id.is_null());
    weights.add_weights(NumberOf(list.at("weights").at(i)));
    weights.add_scores(NumberOf(list.at("scores").at(i)));
  }
  weights.set_remaining_weight(NumberOf(list.at("remaining")));
  return weights;
}

LookupAnswer PartOf(const json& part, const json& item) {
  LookupAnswer answer;
  answer.values.rows = static_cast<std::uint32_t>(part.at("values").size());
  answer.values.cols = item.at("columns").get<std::uint32_t>();
  for (const json& row : part["values"]) {
    answer.values.cols = static_cast<std::uint32_t>(row.size());
    for (const json& value : row) answer.values.data.push_back(NumberOf(value));
  }
  for (std::size_t i = 0; i < part.at("empty").size(); ++i) {
    answer.stats.push_back(StatsOf(part, i));
  }
  if (part.contains("weights")) {
    for (const json& list : part["weights"]) answer.weights.push_back(WeightsOf(list));
  }
  answer.revision = part.value("revision", std::uint64_t{0});
  answer.row_count = part.value("row_count", std::uint64_t{0});
  answer.log_sum_exp_error = part.at("log_sum_exp_error").get<double>();
  return answer;
}

void ExpectClose(double found, double expected, double tolerance) {
  if (std::isfinite(expected)) {
    EXPECT_NEAR(found, expected, tolerance * std::max(1.0, std::abs(expected)));
  } else {
    EXPECT_TRUE(found == expected || (std::isnan(found) && std::isnan(expected))) << found;
  }
}

void ExpectStats(const v1::QueryStats& found, const v1::QueryStats& expected, double tolerance) {
  ExpectClose(found.log_sum_exp(), expected.log_sum_exp(), tolerance);
  ExpectClose(found.max_logit(), expected.max_logit(), tolerance);
  ExpectClose(found.entropy(), expected.entropy(), tolerance);
  ExpectClose(found.error_bound(), expected.error_bound(), tolerance);
  EXPECT_EQ(found.counted_rows(), expected.counted_rows());
  EXPECT_EQ(found.summed_rows(), expected.summed_rows());
  EXPECT_EQ(found.empty(), expected.empty());
}

void ExpectWeights(const v1::QueryWeights& found, const v1::QueryWeights& expected,
                   double tolerance) {
  EXPECT_THAT(found.positions(), ElementsAreArray(expected.positions()));
  EXPECT_THAT(found.ids(), ElementsAreArray(expected.ids()));
  EXPECT_THAT(found.has_ids(), ElementsAreArray(expected.has_ids()));
  EXPECT_THAT(found.weights(), Pointwise(DoubleNear(tolerance), expected.weights()));
  EXPECT_THAT(found.scores(), Pointwise(DoubleNear(tolerance), expected.scores()));
  EXPECT_NEAR(found.remaining_weight(), expected.remaining_weight(), tolerance);
}

// Expects the answer that `item` has as "merged". The values may have been rounded `roundings`
// times to float32.
void ExpectMerged(const LookupAnswer& found, const json& item, double tolerance, int roundings) {
  const json& merged = item.at("merged");
  const LookupAnswer expected = PartOf(merged, item);
  EXPECT_EQ(found.values.rows, expected.values.rows);
  EXPECT_EQ(found.values.cols, expected.values.cols);
  ASSERT_EQ(found.values.data.size(), expected.values.data.size());
  const double largest = item.at("largest").get<double>();
  for (std::size_t i = 0; i < found.values.data.size(); ++i) {
    EXPECT_NEAR(found.values.data[i], expected.values.data[i],
                (tolerance + roundings * std::ldexp(1, -22)) * largest);
  }
  ASSERT_EQ(found.stats.size(), expected.stats.size());
  for (std::size_t i = 0; i < found.stats.size(); ++i) {
    ExpectStats(found.stats[i], expected.stats[i], tolerance);
  }
  ASSERT_EQ(found.weights.size(), expected.weights.size());
  ASSERT_EQ(found.weight_parts.size(), expected.weights.size());
  for (std::size_t i = 0; i < found.weights.size(); ++i) {
    ExpectWeights(found.weights[i], expected.weights[i], tolerance);
    EXPECT_EQ(found.weight_parts[i],
              merged["weights"][i].at("parts").get<std::vector<std::uint32_t>>());
  }
  EXPECT_EQ(found.revision, 0u);
  EXPECT_EQ(found.row_count, 0u);
  EXPECT_EQ(found.log_sum_exp_error, expected.log_sum_exp_error);
  EXPECT_EQ(found.parts, item.at("parts").size());
}

TEST(ConformanceTest, AnswersMergeToThatOverAllRowsAsTheFileSays) {
  const json file = ReadCases("merge.json");
  const double tolerance = file.at("tolerance").get<double>();
  for (const json& item : file.at("cases")) {
    SCOPED_TRACE(item.at("name").get<std::string>());
    std::vector<LookupAnswer> parts;
    for (const json& part : item.at("parts")) parts.push_back(PartOf(part, item));
    const absl::StatusOr<LookupAnswer> at_once = MergeAnswers(parts);
    absl::StatusOr<LookupAnswer> in_turn = parts[0];
    for (std::size_t i = 1; i < parts.size() && in_turn.ok(); ++i) {
      in_turn = MergeAnswers(*in_turn, parts[i]);
    }
    const std::string error = item.value("error", "OK");
    ASSERT_EQ(CodeOf(at_once.status()), error) << at_once.status();
    ASSERT_EQ(CodeOf(in_turn.status()), error) << in_turn.status();
    if (!at_once.ok()) continue;
    ExpectMerged(*at_once, item, tolerance, 1);
    ExpectMerged(*in_turn, item, tolerance, static_cast<int>(parts.size()));
  }
}

}  // namespace
}  // namespace softlookup::client_internal
