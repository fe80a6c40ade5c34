#include "client/console/lookup_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace softlookup::console {
namespace {

using output::Json;
using ::testing::ElementsAre;

TEST(BlockEdgesTest, CutsPositionsIntoNearlyEqualBlocks) {
  EXPECT_THAT(BlockEdges(0, 10, 4), ElementsAre(0, 2, 5, 7, 10));
  EXPECT_THAT(BlockEdges(5, 8, 64), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(BlockEdges(7, 7, 64), ElementsAre(7, 7));
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const auto edges = BlockEdges(0, most, 64);
  EXPECT_EQ(edges.size(), 65u);
  EXPECT_EQ(edges.back(), most);
}

TEST(RecencyShiftTest, IsTheAgeThatABlockLacks) {
  v1::AttentionOptions attention;
  EXPECT_EQ(RecencyShift(attention, 10, 30), 0);
  attention.set_recency_decay(0.5);
  EXPECT_DOUBLE_EQ(RecencyShift(attention, 10, 30), 20 * std::log(0.5));
}

TEST(ReadAttentionTest, LeavesOutWhatIsAbsentAndRefusesOtherWords) {
  const Json empty = Json::object();
  RequestReader reader(empty);
  EXPECT_EQ(ReadAttention(&reader).ByteSizeLong(), 0u);
  const Json json = {{"score", "cosine"}, {"mode", "hard"}, {"temperature", 0.5}, {"top_k", 3}};
  RequestReader full(json);
  const v1::AttentionOptions options = ReadAttention(&full);
  EXPECT_EQ(options.score(), v1::SCORE_COSINE);
  EXPECT_EQ(options.mode(), v1::MODE_HARD);
  EXPECT_EQ(options.temperature(), 0.5);
  EXPECT_EQ(options.top_k(), 3u);
  const Json wrong = {{"score", "loud"}};
  RequestReader refusing(wrong);
  ReadAttention(&refusing);
  EXPECT_FALSE(refusing.status().ok());
}

TEST(ReadFilterTest, ReadsEveryCondition) {
  const Json json = {{"begin", 1},          {"end", 9},     {"last", 4},
                     {"any_labels", {"a"}}, {"ids", {"7"}}, {"no_labels", {"b"}},
                     {"exclude_ids", {"8"}}};
  RequestReader reader(json);
  const v1::RowFilter filter = ReadFilter(&reader);
  ASSERT_TRUE(reader.status().ok());
  EXPECT_EQ(filter.begin(), 1u);
  EXPECT_EQ(filter.end(), 9u);
  EXPECT_EQ(filter.last(), 4u);
  EXPECT_EQ(filter.any_labels(0), "a");
  EXPECT_EQ(filter.no_labels(0), "b");
  EXPECT_EQ(filter.ids(0), 7u);
  EXPECT_EQ(filter.exclude_ids(0), 8u);
}

}  // namespace
}  // namespace softlookup::console
