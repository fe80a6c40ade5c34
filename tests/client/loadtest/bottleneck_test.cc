#include "client/loadtest/bottleneck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace softlookup::loadtest {
namespace {

using std::chrono::microseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// 1000 calls of a rate, each so late and so slow, in 9 s.
LoadResult OpenResult(microseconds lateness, microseconds latency) {
  LoadResult result;
  result.options.rate = 1000;
  result.measured_s = 9;
  result.client.cores = 4;
  for (int i = 0; i < 1000; ++i) {
    result.tally.lateness.Record(lateness);
    result.tally.methods[0].latency.Record(latency);
  }
  for (int s = 0; s < 9; ++s) {
    result.timeline.push_back({.begin_s = s * 1.0,
                               .end_s = s + 1.0,
                               .lateness_p99_s = std::chrono::duration<double>(lateness).count()});
  }
  return result;
}

TEST(BottleneckTest, ASendThatIsLateByLessThanAMillisecondIsTolerable) {
  EXPECT_THAT(InvalidReasons(OpenResult(microseconds(980), microseconds(1000))), IsEmpty());
  EXPECT_THAT(InvalidReasons(OpenResult(microseconds(1020), microseconds(1100))),
              ElementsAre(HasSubstr("late")));
}

TEST(BottleneckTest, BesideLongLatenciesAQuarterOfThemIsTolerable) {
  EXPECT_THAT(InvalidReasons(OpenResult(microseconds(24000), microseconds(100000))), IsEmpty());
  EXPECT_THAT(InvalidReasons(OpenResult(microseconds(26000), microseconds(100000))),
              ElementsAre(HasSubstr("late")));
}

TEST(BottleneckTest, AServerThatIsSlowIsNotTheClientsFault) {
  EXPECT_THAT(InvalidReasons(OpenResult(microseconds(80), microseconds(5000000))), IsEmpty());
}

TEST(BottleneckTest, LatenessWithoutAnyAnswerIsMeasuredByItself) {
  LoadResult result = OpenResult(microseconds(5000), microseconds(0));
  result.tally.methods[0] = {};
  EXPECT_THAT(InvalidReasons(result), ElementsAre(HasSubstr("late")));
}

TEST(BottleneckTest, ABusyClientMustNotGetLaterAndLater) {
  LoadResult result = OpenResult(microseconds(100), microseconds(100000));
  for (int s = 0; s < 9; ++s) result.timeline[s].lateness_p99_s = 1e-3 * (1 + s);
  EXPECT_THAT(InvalidReasons(result), IsEmpty()) << "It is not busy";
  result.client.cores_used = 3.9;
  EXPECT_THAT(InvalidReasons(result), ElementsAre(HasSubstr("later and later")));
  result.client.cores_used = 1;
  result.client.sender = 0.97;
  EXPECT_THAT(InvalidReasons(result), ElementsAre(HasSubstr("later and later")));
  for (int s = 0; s < 9; ++s) result.timeline[s].lateness_p99_s = 5e-3;
  EXPECT_THAT(InvalidReasons(result), IsEmpty()) << "It is busy, but as late as ever";
}

TEST(BottleneckTest, CallsThatWereNotSentMakeARunInvalid) {
  LoadResult result = OpenResult(microseconds(80), microseconds(5000000));
  result.options.in_flight_max = 10000;
  result.tally.methods[1].overflow = 7;
  EXPECT_THAT(BottleneckReasons(result), IsEmpty());
  EXPECT_THAT(
      InvalidReasons(result),
      ElementsAre(HasSubstr("7 calls that were due were not sent, 10,000 being in flight")));
}

TEST(BottleneckTest, CallsThatTheServerRefusesDoNot) {
  LoadResult result = OpenResult(microseconds(80), microseconds(2000));
  result.tally.methods[0].codes[grpc::StatusCode::OK] = 1000;
  result.tally.methods[0].codes[grpc::StatusCode::RESOURCE_EXHAUSTED] = 1000;
  result.tally.methods[0].rejected = 1000;
  EXPECT_THAT(InvalidReasons(result), IsEmpty());
}

TEST(BottleneckTest, AClosedLoopIsInvalidWhereTheClientHasNoCoreLeft) {
  LoadResult result;
  result.measured_s = 9;
  result.client = {.cores_used = 3.7, .cores = 4};
  EXPECT_THAT(InvalidReasons(result), IsEmpty());
  result.client.cores_used = 3.85;
  EXPECT_THAT(InvalidReasons(result), ElementsAre(HasSubstr("3.85 of the 4 cores")));
}

}  // namespace
}  // namespace softlookup::loadtest
