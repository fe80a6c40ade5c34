#include "core/replicated_log/latest_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/error.h"
#include "tests/testing/told_clock.h"

namespace softlookup {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LatestWaitsTest : public ::testing::Test {
 protected:
  void Add(const std::string& name) {
    waits_.Add([this, name](const absl::Status& status) {
      ended_.push_back(absl::StrCat(name, " ", status.ok() ? "OK" : ReasonOf(status)));
      EXPECT_TRUE(status.ok() || RetryAfterOf(status).has_value());
    });
  }
  // Answers the question that is open.
  void Answer(LatestWaits::Answer answer) {
    ASSERT_EQ(questions_.size(), answered_ + 1);
    questions_[answered_++](std::move(answer));
  }
  std::vector<std::string> TakeEnded() { return std::exchange(ended_, {}); }

  testing::ToldClock clock_;
  std::vector<absl::AnyInvocable<void(LatestWaits::Answer)>> questions_;
  std::size_t answered_ = 0;
  std::vector<std::string> ended_;
  LatestWaits waits_{clock_, [this](absl::AnyInvocable<void(LatestWaits::Answer)> answer) {
                       questions_.push_back(std::move(answer));
                     }};
};

TEST_F(LatestWaitsTest, AWaitEndsOnceItsEntryIsShown) {
  waits_.Show(3);
  Add("a");
  EXPECT_THAT(TakeEnded(), IsEmpty());
  Answer(5);
  waits_.Show(4);
  EXPECT_THAT(TakeEnded(), IsEmpty());
  waits_.Show(5);
  EXPECT_THAT(TakeEnded(), ElementsAre("a OK"));
  EXPECT_TRUE(waits_.empty());
  Add("b");
  Answer(5);
  EXPECT_THAT(TakeEnded(), ElementsAre("b OK"));
}

// The answer to a question that was open already may be older than what "c" has to see.
TEST_F(LatestWaitsTest, AWaitDoesNotCountAQuestionThatWasAskedBefore) {
  waits_.Show(10);
  Add("a");
  Add("b");
  Add("c");
  EXPECT_EQ(questions_.size(), 1u);
  Answer(9);
  EXPECT_THAT(TakeEnded(), ElementsAre("a OK"));
  EXPECT_EQ(questions_.size(), 2u) << "one question for both";
  Add("d");
  Answer(11);
  EXPECT_THAT(TakeEnded(), IsEmpty());
  waits_.Show(11);
  EXPECT_THAT(TakeEnded(), ElementsAre("b OK", "c OK"));
  Answer(11);
  EXPECT_THAT(TakeEnded(), ElementsAre("d OK"));
  waits_.Tick();
  EXPECT_EQ(questions_.size(), 3u) << "nobody waits";
}

TEST_F(LatestWaitsTest, AQuestionThatWasNotAnsweredIsAskedAgain) {
  Add("a");
  Answer(absl::UnavailableError("etcd is away"));
  EXPECT_EQ(questions_.size(), 1u) << "not at once";
  waits_.Tick();
  waits_.Tick();
  EXPECT_EQ(questions_.size(), 2u);
  Answer(0);
  EXPECT_THAT(TakeEnded(), ElementsAre("a OK"));
}

TEST_F(LatestWaitsTest, EachWaitTakesSomeSecondsAtMost) {
  Add("a");
  Answer(5);
  clock_.Advance(LatestWaits::kWaitMax / 2);
  Add("b");
  clock_.Advance(LatestWaits::kWaitMax / 2);
  waits_.Tick();
  EXPECT_THAT(TakeEnded(), ElementsAre("a CLUSTER_UNAVAILABLE"));
  clock_.Advance(LatestWaits::kWaitMax / 2);
  waits_.Tick();
  EXPECT_THAT(TakeEnded(), ElementsAre("b CLUSTER_UNAVAILABLE"));
  Answer(5);
  waits_.Show(5);
  EXPECT_THAT(TakeEnded(), IsEmpty());
}

TEST_F(LatestWaitsTest, AllWaitsCanBeEnded) {
  Add("a");
  Add("b");
  waits_.EndAll(WithRetryAfter(MakeError(reasons::kShuttingDown, ""), absl::Seconds(1)));
  EXPECT_THAT(TakeEnded(), ElementsAre("a SHUTTING_DOWN", "b SHUTTING_DOWN"));
  EXPECT_TRUE(waits_.empty());
}

}  // namespace
}  // namespace softlookup
