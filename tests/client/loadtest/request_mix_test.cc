#include "client/loadtest/request_mix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace softlookup::loadtest {
namespace {

using ::testing::HasSubstr;

TEST(RequestMixTest, WeightsAreWhatTheirPartsAre) {
  const auto mix = RequestMix::Parse("lookup=30,append=10");
  ASSERT_TRUE(mix.ok()) << mix.status();
  EXPECT_DOUBLE_EQ(mix->ShareOf(Method::kLookup), 0.75);
  EXPECT_EQ(mix->ToString(), "lookup=0.75,append=0.25");
  Random random(1);
  int lookups = 0;
  for (int i = 0; i < 100000; ++i) lookups += mix->Draw(&random) == Method::kLookup;
  EXPECT_NEAR(lookups, 75000, 600);
}

TEST(RequestMixTest, WhatHasNoPartIsNeverDrawn) {
  for (const std::string text : {"append=1", "lookup=0,append=5"}) {
    const auto mix = RequestMix::Parse(text);
    ASSERT_TRUE(mix.ok()) << mix.status();
    EXPECT_FALSE(mix->Has(Method::kLookup));
    Random random(1);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(mix->Draw(&random), Method::kAppend);
  }
  EXPECT_FALSE(RequestMix().Has(Method::kAppend));
}

TEST(RequestMixTest, WhatIsNoMixIsRefusedWithItsReason) {
  for (const auto& [text, reason] :
       {std::pair("lokup=1", "none of lookup, append"), std::pair("lookup", "not a number"),
        std::pair("lookup=-1", "not a number"), std::pair("lookup=nan", "not a number"),
        std::pair("lookup=1,lookup=2", "twice"), std::pair("lookup=0", "over 0"),
        std::pair("", "none of")}) {
    const auto mix = RequestMix::Parse(text);
    ASSERT_FALSE(mix.ok()) << text;
    EXPECT_THAT(std::string(mix.status().message()), HasSubstr(reason)) << text;
  }
}

}  // namespace
}  // namespace softlookup::loadtest
