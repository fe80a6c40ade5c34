#include "client/tool/range_moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/testing/random.h"

namespace softlookup::tool {
namespace {

using admin::v1::StoreRange;
using admin::v1::StoreRanges;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

void AddRange(StoreRanges& ranges, std::uint64_t bytes, const std::vector<std::string>& nodes) {
  const int index = ranges.ranges_size();
  StoreRange& range = *ranges.add_ranges();
  range.set_begin(static_cast<std::uint64_t>(index) * 1024);
  range.set_byte_size(bytes);
  range.mutable_nodes()->Assign(nodes.begin(), nodes.end());
}

// Bytes at each node after `moves`.
std::map<std::string, std::int64_t> LoadsAfter(const StoreRanges& ranges,
                                               const std::vector<RangeMove>& moves) {
  std::map<std::string, std::int64_t> loads;
  for (const StoreRange& range : ranges.ranges()) {
    std::vector<std::string> nodes(range.nodes().begin(), range.nodes().end());
    for (const RangeMove& move : moves) {
      if (move.begin == range.begin()) nodes = move.nodes;
    }
    for (const std::string& node : nodes) {
      loads[node] += static_cast<std::int64_t>(range.byte_size());
    }
  }
  return loads;
}

TEST(MovesToBalanceTest, ANewNodeGetsItsPart) {
  StoreRanges ranges;
  for (int i = 0; i < 6; ++i) AddRange(ranges, 100, {i < 3 ? "a" : "b"});
  const auto moves = MovesToBalance(ranges, {"a", "b", "c"});
  EXPECT_EQ(moves.size(), 2);
  EXPECT_THAT(LoadsAfter(ranges, moves),
              ElementsAre(Pair("a", 200), Pair("b", 200), Pair("c", 200)));
}

TEST(MovesToBalanceTest, EqualLoadsStay) {
  StoreRanges ranges;
  AddRange(ranges, 100, {"a"});
  AddRange(ranges, 99, {"b"});
  EXPECT_THAT(MovesToBalance(ranges, {"a", "b"}), IsEmpty());
  EXPECT_THAT(MovesToBalance(StoreRanges(), {"a", "b"}), IsEmpty());
}

TEST(MovesToBalanceTest, ANodeThatIsNotNamedLosesItsRanges) {
  StoreRanges ranges;
  AddRange(ranges, 100, {"a", "c"});
  AddRange(ranges, 50, {"c"});
  AddRange(ranges, 50, {"b"});
  EXPECT_THAT(LoadsAfter(ranges, MovesToBalance(ranges, {"a", "b"})),
              ElementsAre(Pair("a", 150), Pair("b", 150)));
  // Each range keeps one node when there are fewer than it had.
  EXPECT_THAT(LoadsAfter(ranges, MovesToBalance(ranges, {"b"})), ElementsAre(Pair("b", 200)));
}

TEST(MovesToBalanceTest, NoNodeIsFarAboveTheMean) {
  testing::Draw draw(1);
  const std::vector<std::string> nodes = {"a", "b", "c", "d"};
  for (int run = 0; run < 300; ++run) {
    StoreRanges ranges;
    std::int64_t sum = 0, largest = 0;
    for (int i = 0; i < 20; ++i) {
      const std::int64_t bytes = draw.Int(1, 1000);
      AddRange(ranges, static_cast<std::uint64_t>(bytes),
               {nodes[static_cast<std::size_t>(draw.Int(0, 3))]});
      sum += bytes;
      largest = std::max(largest, bytes);
    }
    for (const auto& [node, load] : LoadsAfter(ranges, MovesToBalance(ranges, nodes))) {
      EXPECT_LE(load, sum / 4 + largest) << node;
    }
  }
}

}  // namespace
}  // namespace softlookup::tool
