#include "client/loadtest/condition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace softlookup::loadtest {
namespace {

using ::testing::HasSubstr;

// 90 lookups of 1 to 90 ms, 10 appends of 200 ms, 5 errors, 20 rejected in 2 ms, 5 not sent; 40/s.
LoadResult Result() {
  LoadResult result;
  auto& lookups = result.tally.methods[0];
  auto& appends = result.tally.methods[1];
  for (int ms = 1; ms <= 90; ++ms) lookups.latency.Record(std::chrono::milliseconds(ms));
  for (int i = 0; i < 10; ++i) appends.latency.Record(std::chrono::milliseconds(200));
  for (int i = 0; i < 20; ++i) result.tally.rejection.Record(std::chrono::milliseconds(2));
  result.tally.lateness.Record(std::chrono::microseconds(30));
  lookups.codes[grpc::StatusCode::OK] = 90;
  appends.codes[grpc::StatusCode::OK] = 10;
  lookups.codes[grpc::StatusCode::INTERNAL] = 5;
  lookups.codes[grpc::StatusCode::RESOURCE_EXHAUSTED] = 20;
  lookups.rejected = 20;
  lookups.overflow = 5;
  result.tally.ok_meanwhile = 80;
  result.measured_s = 2;
  return result;
}

bool Holds(const std::string& text) {
  const auto condition = Condition::Parse(text);
  EXPECT_TRUE(condition.ok()) << condition.status();
  return condition.ok() && condition->Holds(Result());
}

TEST(ConditionTest, TimesAreComparedInAnyUnit) {
  EXPECT_TRUE(Holds("p50>49ms"));
  EXPECT_TRUE(Holds("p50<51ms"));
  EXPECT_FALSE(Holds("p50>0.051s"));
  EXPECT_TRUE(Holds("p99.9>=199000us"));
  EXPECT_TRUE(Holds("max>=200ms"));
  EXPECT_FALSE(Holds("max>200ms"));
  EXPECT_TRUE(Holds("min<=1ms"));
  EXPECT_TRUE(Holds(" mean > 60ms"));
  EXPECT_FALSE(Holds("mean>62ms"));
}

TEST(ConditionTest, AKindOfCallsHasTimesOfItsOwn) {
  EXPECT_TRUE(Holds("lookup.p99<91ms"));
  EXPECT_TRUE(Holds("append.p50>190ms"));
  EXPECT_TRUE(Holds("rejected.p99<5ms"));
  EXPECT_TRUE(Holds("late<31us"));
}

TEST(ConditionTest, CallsAreComparedByNumberOrPart) {
  EXPECT_TRUE(Holds("errors>0"));
  EXPECT_TRUE(Holds("errors=5"));
  EXPECT_TRUE(Holds("errors==5"));
  EXPECT_TRUE(Holds("rejected>=20"));
  EXPECT_FALSE(Holds("rejected>20"));
  EXPECT_TRUE(Holds("overflow>4"));
  EXPECT_TRUE(Holds("rejected>15%"));  // 20 of 130.
  EXPECT_FALSE(Holds("rejected>16%"));
  EXPECT_TRUE(Holds("rate<41"));
  EXPECT_FALSE(Holds("rate<40"));
}

TEST(ConditionTest, NothingHoldsOfCallsThatThereAreNot) {
  const LoadResult empty;
  for (const std::string text : {"p99>1ms", "p99<1ms", "append.mean>=0ms", "errors>1%"}) {
    EXPECT_FALSE(Condition::Parse(text)->Holds(empty)) << text;
  }
  EXPECT_TRUE(Condition::Parse("rate<1")->Holds(empty));
}

TEST(ConditionTest, SaysWhatItFound) {
  EXPECT_EQ(Condition::Parse("max>1s")->Describe(Result()), "max is 200 ms");
  EXPECT_EQ(Condition::Parse("errors>1%")->Describe(Result()), "errors is 3.85%");
  EXPECT_EQ(Condition::Parse("rate<10")->Describe(Result()), "rate is 40/s");
}

TEST(ConditionTest, WhatIsNoConditionIsRefusedWithWhatWouldBe) {
  for (const auto& [text, reason] :
       {std::pair("p99", "such as 'p99>20ms', in quotes"),
        std::pair("p99>20", "a time such as 20ms"), std::pair("p101>1ms", "no figure \"p101\""),
        std::pair("p>1ms", "no figure"), std::pair("pinf>1ms", "no figure"),
        std::pair("latency>1ms", "no figure \"latency\""),
        std::pair("append.errors>1", "no figure"), std::pair("errors>many", "a number"),
        std::pair("errors>", "a number"), std::pair("rate<5%", "a number"),
        std::pair("errors>-1", "at least 0"), std::pair("p99>-1ms", "a time"),
        std::pair(">1ms", "no figure")}) {
    const auto condition = Condition::Parse(text);
    ASSERT_FALSE(condition.ok()) << text;
    EXPECT_THAT(std::string(condition.status().message()), HasSubstr(reason));
    EXPECT_THAT(std::string(condition.status().message()), HasSubstr(text));
  }
}

TEST(ConditionTest, ObjectivesAreUpperBoundsAndRatesLowerOnes) {
  const auto objectives = ParseObjectives("p99=200ms,max<=200ms,rate=40");
  ASSERT_TRUE(objectives.ok()) << objectives.status();
  ASSERT_EQ(objectives->size(), 3u);
  for (const Condition& objective : *objectives) {
    EXPECT_TRUE(objective.Holds(Result())) << objective.text();
  }
  EXPECT_FALSE(ParseObjectives("p99=199ms")->front().Holds(Result()));
  EXPECT_FALSE(ParseObjectives("rate=41")->front().Holds(Result()));
  for (const std::string text : {"p99<201ms", "rate>39", "rate>=40", "errors<=5"}) {
    const auto one = ParseObjectives(text);
    ASSERT_TRUE(one.ok()) << one.status();
    EXPECT_TRUE(one->front().Holds(Result())) << text;
  }
  EXPECT_FALSE(ParseObjectives("p99=20ms,").ok());
  EXPECT_FALSE(ParseObjectives("").ok());
}

TEST(ConditionTest, ABoundOnTheWrongSideIsNoObjective) {
  for (const std::string text : {"p99>20ms", "p99>=20ms", "mean=5ms,max>1s", "errors>0"}) {
    const auto objectives = ParseObjectives(text);
    ASSERT_FALSE(objectives.ok()) << text;
    EXPECT_THAT(std::string(objectives.status().message()), HasSubstr("has an upper bound"));
  }
  for (const std::string text : {"rate<1000", "rate<=1000"}) {
    const auto objectives = ParseObjectives(text);
    ASSERT_FALSE(objectives.ok()) << text;
    EXPECT_THAT(std::string(objectives.status().message()), HasSubstr("has a lower bound"));
  }
}

}  // namespace
}  // namespace softlookup::loadtest
