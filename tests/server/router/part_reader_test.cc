#include "server/router/part_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/limits.h"
#include "server/cluster/shared_limit.h"
#include "server/rpc/message_buffer.h"
#include "server/rpc/ranges/ranges.pb.h"
#include "server/rpc/ranges_codec.h"

namespace softlookup::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

grpc::ByteBuffer Garbage() {
  const grpc::Slice slice(std::string("\xff\xff\xff"));
  return {&slice, 1};
}

grpc::ByteBuffer RangesFrom(const std::vector<std::uint64_t>& begins) {
  cluster::v1::BeginLookupResponse begun;
  begun.set_revision(7);
  begun.set_incarnation(8);
  begun.set_row_count(9);
  for (const std::uint64_t begin : begins) {
    cluster::v1::StoreRange& range = *begun.add_ranges();
    range.set_begin(begin);
    range.add_nodes("a");
    range.add_nodes("b");
  }
  return BytesOf(begun);
}

TEST(ReadRangesTest, ReturnsWhatANodeHasTold) {
  const auto told = ReadRanges(RangesFrom({0, 10, 20}));
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ((*told)->revision, 7u);
  EXPECT_EQ((*told)->incarnation, 8u);
  EXPECT_EQ((*told)->row_count, 9u);
  ASSERT_EQ((*told)->ranges.size(), 3u);
  EXPECT_EQ((*told)->ranges[2].begin, 20u);
  EXPECT_THAT((*told)->ranges[2].nodes, ElementsAre("a", "b"));
  EXPECT_TRUE((*ReadRanges(RangesFrom({})))->ranges.empty());
}

TEST(ReadRangesTest, RefusesWhatNoStoreHas) {
  const auto error = [](const grpc::ByteBuffer& bytes) {
    const absl::Status status = ReadRanges(bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    return std::string(status.message());
  };
  EXPECT_THAT(error(RangesFrom({1})), HasSubstr("do not follow each other"));
  EXPECT_THAT(error(RangesFrom({0, 5, 5})), HasSubstr("do not follow each other"));
  EXPECT_THAT(error(RangesFrom({0, 5, 4})), HasSubstr("do not follow each other"));
  std::vector<std::uint64_t> begins(kRangeCountMax);
  for (std::size_t i = 0; i < begins.size(); ++i) begins[i] = i;
  EXPECT_TRUE(ReadRanges(RangesFrom(begins)).ok());
  begins.push_back(begins.size());
  EXPECT_THAT(error(RangesFrom(begins)), HasSubstr("too many ranges"));
  EXPECT_THAT(error(Garbage()), HasSubstr("something else than ranges"));
}

grpc::ByteBuffer PartOfQueries(std::int64_t queries) {
  PartialLookup part{.shape = {.query_count = queries, .num_heads = 1, .value_dim = 4}};
  part.answers.resize(static_cast<std::size_t>(queries));
  return BytesOf(EncodePartialLookup(part));
}

TEST(PartReaderTest, HoldsTheBytesOfWhatItHasDecoded) {
  constexpr std::int64_t kQueries = 100;
  const grpc::ByteBuffer bytes = PartOfQueries(kQueries);
  const std::uint64_t needed = 2 * bytes.Length() + kQueries * sizeof(PartialAnswer);
  SharedLimit enough(needed);
  {
    const auto part = PartReader(enough).ReadPart(bytes);
    ASSERT_TRUE(part.ok()) << part.status();
    EXPECT_EQ(part->answer.answers.size(), static_cast<std::size_t>(kQueries));
    EXPECT_EQ(enough.Take(1), std::nullopt);
  }
  EXPECT_NE(enough.Take(needed), std::nullopt);

  SharedLimit too_few(needed - 1);
  EXPECT_EQ(ReasonOf(PartReader(too_few).ReadPart(bytes).status()), "QUEUE_FULL");
  EXPECT_NE(too_few.Take(needed - 1), std::nullopt);
}

TEST(PartReaderTest, RefusesWhatIsNoAnswer) {
  SharedLimit limit(1'000'000);
  const PartReader reader(limit);
  EXPECT_THAT(std::string(reader.ReadPart(Garbage()).status().message()),
              HasSubstr("something else than a part"));
  EXPECT_THAT(std::string(reader.ReadSums(Garbage()).status().message()),
              HasSubstr("something else than sums"));
  cluster::v1::RowSums sums;
  sums.set_sums(std::string(7, '\0'));
  EXPECT_EQ(reader.ReadSums(BytesOf(sums)).status().code(), absl::StatusCode::kInternal);
  sums.set_sums(std::string(8, '\0'));
  EXPECT_TRUE(reader.ReadSums(BytesOf(sums)).ok());
}

}  // namespace
}  // namespace softlookup::server
