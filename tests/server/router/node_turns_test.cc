#include "server/router/node_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace softlookup::server {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::IsEmpty;
using ::testing::Optional;

TEST(NodeTurnsTest, ANodeGetsOneCallAndAfterItsAnswerAFewAtATime) {
  NodeTurns<int> turns;
  EXPECT_THAT(turns.Add("a", 1), Optional(1));
  for (int call = 2; call <= 5; ++call) EXPECT_THAT(turns.Add("a", call), Eq(std::nullopt));
  EXPECT_THAT(turns.Add("b", 6), Optional(6));
  EXPECT_THAT(turns.Add("b", 7), Eq(std::nullopt));

  EXPECT_THAT(turns.EndTurn("a", 2), ElementsAre(2, 3));
  EXPECT_THAT(turns.EndTurn("a", 2), ElementsAre(4));
  EXPECT_THAT(turns.EndTurn("b", 1), ElementsAre(7));
  EXPECT_THAT(turns.EndTurn("a", 2), ElementsAre(5));
  EXPECT_THAT(turns.EndTurn("a", 2), IsEmpty());
  // One is still in progress.
  EXPECT_THAT(turns.Add("a", 8), Eq(std::nullopt));
  EXPECT_THAT(turns.EndTurn("a", 2), ElementsAre(8));
  EXPECT_THAT(turns.EndTurn("a", 2), IsEmpty());
  EXPECT_THAT(turns.Add("a", 9), Optional(9));
}

TEST(NodeTurnsTest, ForgottenCallsTakeNoTurn) {
  NodeTurns<int> turns;
  EXPECT_THAT(turns.Add("a", 1), Optional(1));
  EXPECT_THAT(turns.Add("a", 2), Eq(std::nullopt));
  turns.Clear();
  EXPECT_THAT(turns.Add("a", 3), Optional(3));
  EXPECT_THAT(turns.EndTurn("a", 4), IsEmpty());
}

}  // namespace
}  // namespace softlookup::server
