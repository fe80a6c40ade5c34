#include "server/rpc/message_receiver.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "server/security/authenticator.h"
#include "softlookup/v1/row.pb.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;

// In slices of `slice_bytes` each.
grpc::ByteBuffer BufferOf(const std::string& bytes, std::size_t slice_bytes) {
  std::vector<grpc::Slice> slices;
  for (std::size_t i = 0; i < bytes.size(); i += slice_bytes) {
    slices.emplace_back(bytes.substr(i, slice_bytes));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string SomeRequest() {
  v1::AppendRequest request;
  request.set_store("acme/users");
  request.mutable_keys()->set_data(std::string(1000, 'x'));
  return request.SerializeAsString();
}

// The bytes that a message of `bytes` is charged: its own, and those that it takes when parsed.
std::int64_t ChargeFor(const std::string& bytes) {
  google::protobuf::io::ArrayInputStream input(bytes.data(), static_cast<int>(bytes.size()));
  const auto parsed_bytes =
      MessageScans(Limits()).Of(*v1::AppendRequest::descriptor()).Measure(input);
  EXPECT_THAT(parsed_bytes.status(), IsOk());
  return static_cast<std::int64_t>(bytes.size()) + *parsed_bytes;
}

// A caller whose requests in flight may take `bytes_max`.
Caller LimitedCaller(std::int64_t bytes_max) {
  auto identity = std::make_shared<Identity>();
  identity->name = "ingest";
  identity->limits.bytes_in_flight = bytes_max;
  auto usage = std::make_shared<IdentityUsage>(absl::UnixEpoch());
  usage->bytes()->set_limit(bytes_max);
  return {.identity = identity, .usage = usage};
}

CallerBytes BytesOf(const Caller& caller) {
  if (caller.usage == nullptr) return {};
  return {.identity = caller.identity->name, .budget = caller.usage->bytes()};
}

class MessageReceiverTest : public ::testing::Test {
 protected:
  absl::Status Receive(const MessageReceiver& receiver, const std::string& bytes,
                       MessageCharge& charge, const Caller& caller = {}) {
    grpc::ByteBuffer buffer = BufferOf(bytes, /*slice_bytes=*/1 << 20);
    return receiver.Receive(buffer, BytesOf(caller), message_, charge);
  }

  const std::string bytes_ = SomeRequest();
  const std::int64_t charge_ = ChargeFor(bytes_);
  v1::AppendRequest message_;
};

TEST_F(MessageReceiverTest, ParsesAMessageInOneSliceAndInMany) {
  const MessageReceiver receiver(Limits(), /*request_bytes_max=*/0);
  for (const std::size_t slice_bytes : {std::size_t{1} << 20, std::size_t{7}}) {
    grpc::ByteBuffer buffer = BufferOf(bytes_, slice_bytes);
    MessageCharge charge;
    v1::AppendRequest message;
    ASSERT_THAT(receiver.Receive(buffer, CallerBytes(), message, charge), IsOk());
    EXPECT_EQ(message.SerializeAsString(), bytes_);
    EXPECT_EQ(buffer.Length(), 0u);
  }
}

TEST_F(MessageReceiverTest, AMessageOfMoreThanTheMaximumIsRefusedUnread) {
  Limits limits;
  limits.message_bytes_max = static_cast<std::int64_t>(bytes_.size());
  const MessageReceiver receiver(limits, /*request_bytes_max=*/0);
  MessageCharge charge;
  EXPECT_THAT(Receive(receiver, bytes_, charge), IsOk());
  const absl::Status status = Receive(receiver, bytes_ + '\xff', charge);
  EXPECT_EQ(ReasonOf(status), reasons::kMessageTooLarge.name) << status;
}

TEST_F(MessageReceiverTest, BytesThatAreNoMessageAreMalformed) {
  const MessageReceiver receiver(Limits(), /*request_bytes_max=*/0);
  // The second one ends within a field. The third one's name of a store is not UTF-8.
  for (const std::string& bytes : {std::string("\xff\xff\xff"), bytes_.substr(0, bytes_.size() - 1),
                                   std::string("\x0a\x02\xff\xfe")}) {
    MessageCharge charge;
    const absl::Status status = Receive(receiver, bytes, charge);
    EXPECT_EQ(ReasonOf(status), reasons::kMalformedMessage.name) << status;
  }
}

TEST_F(MessageReceiverTest, TheBudgetOfAllRequestsCountsRawAndParsedBytesUntilTheChargeIsGone) {
  MessageCharge first, second;
  EXPECT_EQ(ReasonOf(Receive(MessageReceiver(Limits(), charge_ - 1), bytes_, first)),
            reasons::kRequestBytes.name);
  const MessageReceiver receiver(Limits(), charge_);
  EXPECT_THAT(Receive(receiver, bytes_, first), IsOk());
  const absl::Status status = Receive(receiver, bytes_, second);
  EXPECT_EQ(ReasonOf(status), reasons::kRequestBytes.name) << status;
  EXPECT_NE(RetryAfterOf(status), std::nullopt);
  first = MessageCharge();
  EXPECT_THAT(Receive(receiver, bytes_, second), IsOk());
}

TEST_F(MessageReceiverTest, TheBudgetOfACallerIsItsOwn) {
  const MessageReceiver receiver(Limits(), /*request_bytes_max=*/0);
  const Caller limited = LimitedCaller(charge_), other = LimitedCaller(charge_);
  MessageCharge first, second;
  EXPECT_THAT(Receive(receiver, bytes_, first, limited), IsOk());
  const absl::Status status = Receive(receiver, bytes_, second, limited);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, "\"ingest\""));
  EXPECT_EQ(ReasonOf(status), reasons::kIdentityLimit.name);
  EXPECT_NE(RetryAfterOf(status), std::nullopt);
  EXPECT_THAT(Receive(receiver, bytes_, second, other), IsOk());
  EXPECT_EQ(limited.usage->bytes()->used(), charge_);
}

TEST_F(MessageReceiverTest, ARefusedMessageGivesItsBytesBackWithItsCharge) {
  const MessageReceiver receiver(Limits(), charge_ - 1);
  const Caller caller = LimitedCaller(charge_);
  {
    MessageCharge charge;
    EXPECT_EQ(ReasonOf(Receive(receiver, bytes_, charge, caller)), reasons::kRequestBytes.name);
  }
  EXPECT_EQ(caller.usage->bytes()->used(), 0);
}

}  // namespace
}  // namespace softlookup::server
