#include "client/recall/blend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace softlookup::recall {
namespace {

using ::testing::ElementsAre;

TEST(BlendTest, IsTheNormalisedSum) {
  EXPECT_THAT(Blend({3, 0}, 2, {0, 2}), ElementsAre(0.6f, 0.8f));
  EXPECT_THAT(Blend({0, 2}, 0, {5, 5}), ElementsAre(0, 1));
  EXPECT_THAT(Blend({1, -1}, 1, {-1, 1}), ElementsAre(1, -1));  // Nothing is left to normalise.
}

}  // namespace
}  // namespace softlookup::recall
