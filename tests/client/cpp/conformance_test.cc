// The cases of tests/conformance, which every client must pass.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/resend_queue.h"
#include "client/cpp/retry.h"
#include "google/rpc/error_details.pb.h"
#include "softlookup/error_details.h"

namespace softlookup::client_internal {
namespace {

using nlohmann::json;

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

}  // namespace
}  // namespace softlookup::client_internal
