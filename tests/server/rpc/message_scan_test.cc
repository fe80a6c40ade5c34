#include "server/rpc/message_scan.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"
#include "server/rpc/message_scans.h"
#include "softlookup/v1/row.pb.h"
#include "softlookup/v1/store.pb.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;

template <typename Message>
absl::StatusOr<std::int64_t> Measure(const std::string& bytes, int block = -1) {
  static const auto& scans = *new MessageScans(Limits());
  google::protobuf::io::ArrayInputStream input(bytes.data(), static_cast<int>(bytes.size()), block);
  return scans.Of(*Message::descriptor()).Measure(input);
}

template <typename Message>
absl::StatusOr<std::int64_t> Measure(const Message& message) {
  return Measure<Message>(message.SerializeAsString());
}

// `field` with `length` bytes of `byte`.
std::string Field(int field, std::size_t length, char byte = 0) {
  EXPECT_LT(length, 128u);
  return std::string{static_cast<char>(field << 3 | 2), static_cast<char>(length)} +
         std::string(length, byte);
}

std::string Repeated(const std::string& text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

v1::AppendRequest SomeAppend() {
  v1::AppendRequest request;
  request.set_store("acme/users");
  request.mutable_keys()->set_rows(3);
  request.mutable_keys()->set_data(std::string(48, 'x'));
  for (int i = 0; i < 100; ++i) request.mutable_values()->add_values(1.5f);
  for (int i = 0; i < 1000; ++i) request.add_ids(std::uint64_t{1} << (i % 64));
  for (int i = 0; i < 50; ++i) {
    v1::RowLabels* labels = request.add_row_labels();
    for (int j = 0; j < 5; ++j)
      labels->add_labels("a label of some length, number " + std::to_string(j));
  }
  request.set_sequence(7);
  return request;
}

TEST(MessageScanTest, TellsNoLessThanParsingTakes) {
  const v1::AppendRequest request = SomeAppend();
  v1::AppendRequest parsed;
  ASSERT_TRUE(parsed.ParseFromString(request.SerializeAsString()));
  const auto bytes = Measure(request);
  ASSERT_THAT(bytes.status(), IsOk());
  EXPECT_GE(*bytes, static_cast<std::int64_t>(parsed.SpaceUsedLong()));
  EXPECT_LE(*bytes, 4 * static_cast<std::int64_t>(parsed.SpaceUsedLong()));
}

TEST(MessageScanTest, TellsTheSameHoweverTheBytesAreCut) {
  const std::string bytes = SomeAppend().SerializeAsString();
  const auto whole = Measure<v1::AppendRequest>(bytes);
  ASSERT_THAT(whole.status(), IsOk());
  for (const int block : {1, 2, 3, 7, 64}) {
    EXPECT_EQ(*Measure<v1::AppendRequest>(bytes, block), *whole) << block;
  }
}

TEST(MessageScanTest, EmptySubmessagesAreCountedForWhatTheyTake) {
  const auto bytes = Measure<v1::AppendRequest>(Repeated(Field(7, 0), 1000));
  ASSERT_THAT(bytes.status(), IsOk());
  EXPECT_GE(*bytes, 1000 * static_cast<std::int64_t>(sizeof(v1::RowLabels)));
}

TEST(MessageScanTest, AFieldThatThereIsOneOfIsCountedOnce) {
  const std::string empty_store = Field(1, 0);  // CreateStoreRequest.store.
  const auto once = Measure<v1::CreateStoreRequest>(empty_store);
  const auto often = Measure<v1::CreateStoreRequest>(Repeated(empty_store, 1000));
  ASSERT_TRUE(once.ok() && often.ok());
  EXPECT_EQ(*often, *once);
}

TEST(MessageScanTest, MoreElementsThanAFieldMayHaveAreRefusedByItsName) {
  const auto refusal = [](const auto& measured) { return measured.status(); };
  const std::string too_many_memories = Field(1, 2 * 60) + Field(1, 2 * 5);
  std::string store = "\x0a";  // CreateStoreRequest.store, of 65 empty memories.
  const std::string memories = Repeated(Field(8, 0), 65);
  store += std::string{static_cast<char>(0x80 | (memories.size() & 0x7f)),
                       static_cast<char>(memories.size() >> 7)} +
           memories;
  const absl::Status status = refusal(Measure<v1::CreateStoreRequest>(store));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, "store.memories"));
  EXPECT_EQ(ReasonOf(status), "LIMIT_EXCEEDED");
  EXPECT_THAT(refusal(Measure<v1::AppendRequest>(Repeated(Field(7, 0), 65'537))),
              StatusIs(absl::StatusCode::kInvalidArgument, "row_labels"));
  // Packed, a byte each.
  v1::DeleteRowsRequest ids;
  for (int i = 0; i <= kFilterIdCountMax; ++i) ids.mutable_filter()->add_ids(1);
  EXPECT_THAT(refusal(Measure(ids)), StatusIs(absl::StatusCode::kInvalidArgument, "filter.ids"));
  ids.mutable_filter()->mutable_ids()->RemoveLast();
  EXPECT_THAT(refusal(Measure(ids)), IsOk());
}

TEST(MessageScanTest, PartsOfOneSubmessageHaveItsLimitTogether) {
  v1::CreateStoreRequest part;
  for (int i = 0; i < 40; ++i) part.mutable_store()->add_memories();
  const std::string bytes = part.SerializeAsString();
  EXPECT_THAT(Measure<v1::CreateStoreRequest>(bytes).status(), IsOk());
  EXPECT_THAT(Measure<v1::CreateStoreRequest>(bytes + bytes).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "store.memories"));
}

TEST(MessageScanTest, ARowIsNamedWhereOneOfManyHasTooMuch) {
  v1::AppendRequest request;
  request.add_row_labels();
  for (int i = 0; i < 17; ++i) request.add_row_labels()->add_labels("x");
  for (int i = 0; i < 17; ++i) request.mutable_row_labels(3)->add_labels("x");
  const absl::Status status = Measure(request).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, "row_labels: row 3: labels"));
  EXPECT_THAT(MetadataOf(status), ::testing::Contains(::testing::Pair("row", "3")));
}

TEST(MessageScanTest, UnknownFieldsAreCountedUpToALimit) {
  const std::string unknown = {static_cast<char>(0xf8), 0x7f, 0x01};  // Field 2047, a varint.
  EXPECT_THAT(
      Measure<v1::GetStoreRequest>(Repeated(unknown, MessageScan::kUnknownFieldsMax)).status(),
      IsOk());
  EXPECT_THAT(
      Measure<v1::GetStoreRequest>(Repeated(unknown, MessageScan::kUnknownFieldsMax + 1)).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, "does not know"));
}

TEST(MessageScanTest, WhatDoesNotParseIsMalformed) {
  const std::string whole = SomeAppend().SerializeAsString();
  v1::AppendRequest parsed;
  for (const std::string& bytes :
       {whole.substr(0, whole.size() - 1), std::string("\x0a\xff\xff\xff\xff\x0f"),
        std::string("\x07"), std::string("\x0c"), std::string("\xff\xff\xff\xff\xff\xff"),
        std::string("\x00\x00", 2), std::string("\x12\x05\x0a")}) {
    EXPECT_FALSE(parsed.ParseFromString(bytes));
    EXPECT_EQ(ReasonOf(Measure<v1::AppendRequest>(bytes).status()), "MALFORMED_MESSAGE");
  }
}

TEST(MessageScanTest, AFieldOfAnotherWireTypeIsUnknownAsToTheParser) {
  const std::string bytes("\x08\x01", 2);  // AppendRequest.store as a varint.
  v1::AppendRequest parsed;
  EXPECT_TRUE(parsed.ParseFromString(bytes));
  EXPECT_THAT(Measure<v1::AppendRequest>(bytes).status(), IsOk());
}

}  // namespace
}  // namespace softlookup::server
