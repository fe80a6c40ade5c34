#include "server/router/wire_fields.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/rpc/ranges/ranges.pb.h"
#include "softlookup/v1/lookup.pb.h"
#include "softlookup/v1/store.pb.h"
#include "tests/server/router/wire_bytes.h"

namespace softlookup::server {
namespace {

std::string Text(absl::string_view bytes, std::initializer_list<int> path) {
  grpc::ByteBuffer message = BufferOf(bytes);
  return TextField(message, path);
}

std::uint64_t Number(absl::string_view bytes, int field) {
  grpc::ByteBuffer message = BufferOf(bytes);
  return NumberField(message, {field});
}

TEST(TextFieldTest, IsTheLastOfItsNumberAndType) {
  EXPECT_EQ(Text("", {1}), "");
  EXPECT_EQ(Text(TextBytes(1, "a") + TextBytes(2, "b"), {1}), "a");
  EXPECT_EQ(Text(TextBytes(1, "a") + TextBytes(2, "b") + TextBytes(1, "c"), {1}), "c");
  EXPECT_EQ(Text(TextBytes(1, "a") + TextBytes(1, ""), {1}), "");
  EXPECT_EQ(Text(TextBytes(1, "a") + NumberBytes(1, 7), {1}), "a");
  EXPECT_EQ(Text(TextBytes(1, TextBytes(1, "a")), {1, 1}), "a");
}

TEST(TextFieldTest, OfAMessageThatIsThereSeveralTimesIsThatOfTheMergedOne) {
  const std::string first = TextBytes(1, TextBytes(1, "a") + TextBytes(2, "x"));
  EXPECT_EQ(Text(first + TextBytes(1, TextBytes(2, "y")), {1, 1}), "a");
  EXPECT_EQ(Text(first + TextBytes(1, TextBytes(2, "y")), {1, 2}), "y");
  EXPECT_EQ(Text(first + TextBytes(1, TextBytes(1, "b")), {1, 1}), "b");
}

TEST(TextFieldTest, OfALongTextIsCutSoThatItStaysTooLong) {
  const std::string name(kNameLengthMax, 'n');
  EXPECT_EQ(Text(TextBytes(1, name), {1}), name);
  const std::string cut = Text(TextBytes(1, name + std::string(1'000'000, 'n')), {1});
  EXPECT_EQ(cut, name + "n");
  EXPECT_EQ(Text(TextBytes(1, name + "abc") + TextBytes(2, "b"), {2}), "b");
}

TEST(TextFieldTest, StopsAtTheFirstMistake) {
  const std::string good = TextBytes(1, "a");
  for (const std::string& bad :
       {std::string("\x0a\x05zz"), std::string("\x0a"), std::string("\x0f"), std::string("\x0c"),
        std::string("\0", 1), std::string(11, '\xff'), std::string("\x0a\xff\xff\xff\xff\xff")}) {
    EXPECT_EQ(Text(good + bad, {1}).substr(0, 1), "a") << ::testing::PrintToString(bad);
    grpc::ByteBuffer message = BufferOf(bad + good);
    TextField(message, {1, 1, 1});
  }
  std::string deep = "x";
  for (int i = 0; i < 10'000; ++i) deep += '\x1b';  // Groups that do not end.
  EXPECT_EQ(Text(good + deep, {1}), "a");
}

TEST(NumberFieldTest, IsTheLastOfItsNumberAndType) {
  EXPECT_EQ(Number("", 8), 0u);
  EXPECT_EQ(Number(NumberBytes(8, 5), 8), 5u);
  EXPECT_EQ(Number(NumberBytes(8, 5) + NumberBytes(9, 6) + NumberBytes(8, ~std::uint64_t{0}), 8),
            ~std::uint64_t{0});
  EXPECT_EQ(Number(NumberBytes(8, 5) + TextBytes(8, "7"), 8), 5u);
  EXPECT_EQ(Number(NumberBytes(8, 5) + "\x40", 8), 5u) << "the last one is cut";
}

TEST(FieldTest, IsFoundWhereverTheMessageIsCutIntoSlices) {
  v1::LookupRequest request;
  request.set_store("store-of-a-name");
  request.mutable_queries()->set_data(std::string(300, 'q'));
  request.set_min_revision(std::uint64_t{1} << 40);
  const std::string bytes = request.SerializeAsString();
  for (std::size_t size = 1; size < 40; ++size) {
    grpc::ByteBuffer message = BufferOf(bytes, size);
    EXPECT_EQ(TextField(message, {1}), "store-of-a-name");
    EXPECT_EQ(NumberField(message, {8}), std::uint64_t{1} << 40);
    EXPECT_EQ(BytesIn(message), bytes) << "reading changes nothing";
  }
}

TEST(HasFieldTest, IsTrueOfAnEmptyMessage) {
  const auto has = [](const std::string& bytes, int field) {
    grpc::ByteBuffer message = BufferOf(bytes);
    return HasField(message, field);
  };
  EXPECT_FALSE(has("", 2));
  EXPECT_FALSE(has(TextBytes(1, TextBytes(2, "")), 2));
  EXPECT_FALSE(has(NumberBytes(2, 1), 2));
  EXPECT_TRUE(has(TextBytes(1, "a") + TextBytes(2, ""), 2));
}

TEST(WithFieldTest, AParserTakesWhatWasAdded) {
  v1::LookupRequest request;
  request.set_store("a");
  request.set_min_revision(3);
  request.mutable_queries()->set_rows(2);
  const grpc::ByteBuffer message = BufferOf(request.SerializeAsString());
  grpc::ByteBuffer changed = WithText(WithNumber(message, 8, 5), 1, "b");
  request.set_store("b");
  request.set_min_revision(5);
  v1::LookupRequest parsed;
  ASSERT_TRUE(parsed.ParseFromString(BytesIn(changed)));
  EXPECT_EQ(parsed.SerializeAsString(), request.SerializeAsString());
  EXPECT_EQ(BytesIn(WithNumber(BufferOf(""), 8, 1)), NumberBytes(8, 1));
}

// Else what is added could be the rest of the field that is cut.
TEST(WithFieldTest, AMalformedMessageStaysAsItIs) {
  for (const std::string& bad :
       {std::string("\x12\x03"), std::string("\x0a\x05zz"), std::string("\x40"),
        std::string("\x40\x80"), std::string("\x0b"), std::string("\x0c"),
        std::string("\x0a\x01s\0\x0a\x01t", 7), std::string("\x0f\x01")}) {
    EXPECT_EQ(BytesIn(WithText(BufferOf(bad), 1, "s")), bad) << ::testing::PrintToString(bad);
    EXPECT_EQ(BytesIn(WithNumber(BufferOf(bad), 8, 9)), bad) << ::testing::PrintToString(bad);
  }
}

TEST(WireFieldsTest, AMessageIsAFieldInFrontOfTheOthers) {
  cluster::v1::AnswerPartRequest rest, expected;
  rest.mutable_part()->set_range_begin(5);
  expected = rest;
  expected.mutable_lookup()->set_store("s");
  expected.mutable_lookup()->set_tag(300);
  const std::string lookup = expected.lookup().SerializeAsString();
  for (const std::size_t slice_bytes : {1u, 3u, 100u}) {
    const grpc::ByteBuffer joined = WithMessage(BufferOf(rest.SerializeAsString(), slice_bytes), 1,
                                                BufferOf(lookup, slice_bytes));
    EXPECT_EQ(BytesIn(joined), expected.SerializeAsString());
  }
  EXPECT_EQ(BytesIn(WithMessage(BufferOf(""), 1, BufferOf(""))), std::string("\x0a\0", 2));
  // What is malformed cannot change the fields behind it.
  cluster::v1::AnswerPartRequest parsed;
  const std::string bad = BytesIn(
      WithMessage(BufferOf(rest.SerializeAsString()), 1, BufferOf(std::string("\x0a\x7fs", 3))));
  EXPECT_FALSE(parsed.ParseFromString(bad));
}

}  // namespace
}  // namespace softlookup::server
