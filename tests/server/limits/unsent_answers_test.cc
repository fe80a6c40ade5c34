#include "server/limits/unsent_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <list>
#include <string>

#include "core/base/error.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;

// Each answer is held twice, so that these are the most bytes that one answer may have.
constexpr std::size_t kConnectionAnswerMax = UnsentAnswers::kConnectionBytesMax / 2;
constexpr std::size_t kAnswerMax = UnsentAnswers::kBytesMax / 2;

class UnsentAnswersTest : public ::testing::Test {
 protected:
  // Holds one more answer until the test ends, unless it is refused.
  absl::Status Hold(const std::string& connection, std::size_t bytes, bool may_refuse = true) {
    return held_.emplace_back(answers_).Hold(bytes, may_refuse, connection);
  }

  UnsentAnswers answers_;
  std::list<UnsentAnswer> held_;
};

TEST_F(UnsentAnswersTest, TheAnswersOfAConnectionAreBounded) {
  EXPECT_THAT(Hold("a", kConnectionAnswerMax - 5000), IsOk());
  EXPECT_THAT(Hold("a", 5000), IsOk());
  const absl::Status refused = Hold("a", 5000);
  EXPECT_EQ(ReasonOf(refused), "QUEUE_FULL") << refused;
  EXPECT_NE(RetryAfterOf(refused), std::nullopt);
  EXPECT_FALSE(held_.back().is_counted());
  EXPECT_THAT(Hold("b", 5000), IsOk()) << "another connection has its own bytes";
}

TEST_F(UnsentAnswersTest, TheAnswersOfAllConnectionsAreBounded) {
  for (const char* connection : {"a", "b", "c", "d"}) {
    EXPECT_THAT(Hold(connection, kConnectionAnswerMax), IsOk()) << connection;
  }
  EXPECT_EQ(ReasonOf(Hold("e", 5000)), "QUEUE_FULL");
}

TEST_F(UnsentAnswersTest, AnAnswerThatIsOverCountsNoMore) {
  EXPECT_THAT(Hold("a", kConnectionAnswerMax), IsOk());
  EXPECT_EQ(ReasonOf(Hold("a", kConnectionAnswerMax)), "QUEUE_FULL");
  held_.clear();
  EXPECT_THAT(Hold("a", kConnectionAnswerMax), IsOk());
}

TEST_F(UnsentAnswersTest, AnAnswerOfAnySizeIsAllowedIfItIsTheOnlyOne) {
  EXPECT_THAT(Hold("a", 2 * kAnswerMax), IsOk());
  EXPECT_EQ(ReasonOf(Hold("b", 5000)), "QUEUE_FULL");
}

TEST_F(UnsentAnswersTest, AnAnswerToAChangeIsCountedButNotRefused) {
  EXPECT_THAT(Hold("a", kConnectionAnswerMax), IsOk());
  EXPECT_THAT(Hold("a", kConnectionAnswerMax, /*may_refuse=*/false), IsOk());
  held_.pop_front();
  EXPECT_EQ(ReasonOf(Hold("a", 5000)), "QUEUE_FULL") << "the other one alone fills the connection";
}

TEST_F(UnsentAnswersTest, SmallAnswersDoNotCount) {
  EXPECT_THAT(Hold("a", kAnswerMax), IsOk());
  EXPECT_TRUE(held_.back().is_counted());
  EXPECT_THAT(Hold("a", 4095), IsOk());
  EXPECT_FALSE(held_.back().is_counted());
  EXPECT_EQ(ReasonOf(Hold("a", 4096)), "QUEUE_FULL");
}

}  // namespace
}  // namespace softlookup::server
