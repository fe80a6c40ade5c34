#include "server/router/node_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace softlookup::server {
namespace {

using ::testing::Eq;
using ::testing::Optional;

TEST(NodeTurnsTest, EachNodeGetsAFewCallsAtATimeInTheirOrder) {
  NodeTurns<int> turns;
  EXPECT_THAT(turns.Add("a", 2, 1), Optional(1));
  EXPECT_THAT(turns.Add("a", 2, 2), Optional(2));
  EXPECT_THAT(turns.Add("a", 2, 3), Eq(std::nullopt));
  EXPECT_THAT(turns.Add("a", 2, 4), Eq(std::nullopt));
  EXPECT_THAT(turns.Add("b", 1, 5), Optional(5));
  EXPECT_THAT(turns.Add("b", 1, 6), Eq(std::nullopt));

  EXPECT_THAT(turns.EndTurn("a"), Optional(3));
  EXPECT_THAT(turns.EndTurn("b"), Optional(6));
  EXPECT_THAT(turns.EndTurn("a"), Optional(4));
  EXPECT_THAT(turns.EndTurn("a"), Eq(std::nullopt));
  // One is still in progress.
  EXPECT_THAT(turns.Add("a", 2, 7), Optional(7));
  EXPECT_THAT(turns.Add("a", 2, 8), Eq(std::nullopt));
  EXPECT_THAT(turns.EndTurn("a"), Optional(8));
}

TEST(NodeTurnsTest, ForgottenCallsTakeNoTurn) {
  NodeTurns<int> turns;
  EXPECT_THAT(turns.Add("a", 1, 1), Optional(1));
  EXPECT_THAT(turns.Add("a", 1, 2), Eq(std::nullopt));
  turns.Clear();
  EXPECT_THAT(turns.Add("a", 1, 3), Optional(3));
  EXPECT_THAT(turns.EndTurn("a"), Eq(std::nullopt));
}

}  // namespace
}  // namespace softlookup::server
