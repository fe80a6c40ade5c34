#include "client/cli/nearest_name.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace softlookup::cli {
namespace {

TEST(NearestNameTest, IsTheOneThatTakesTheFewestEdits) {
  const std::vector<std::string> known = {"lookup", "loadtest", "look"};
  EXPECT_EQ(NearestName("lokup", known), "lookup");
  EXPECT_EQ(NearestName("loook", known), "look");
  EXPECT_EQ(NearestName("lookup", known), "lookup");
  EXPECT_EQ(NearestName("append", known), "");
  EXPECT_EQ(NearestName("lookup", {}), "");
}

TEST(NearestNameTest, TakesNoMoreEditsThanAllowedNorThanHalfOfTheWord) {
  EXPECT_EQ(NearestName("threds", {"threads"}), "threads");
  EXPECT_EQ(NearestName("trds", {"threads"}), "");
  EXPECT_EQ(NearestName("trdsxx", {"threads"}, 5), "");
  EXPECT_EQ(NearestName("treadz", {"threads"}, 2), "threads");
  EXPECT_EQ(NearestName("treazz", {"threads"}, 2), "");
  EXPECT_EQ(NearestName("treazz", {"threads"}, 3), "threads");
  EXPECT_EQ(NearestName("ab", {"abc"}), "abc");
  EXPECT_EQ(NearestName("ab", {"abcd"}), "");
  EXPECT_EQ(NearestName("a", {"ab"}), "");
}

TEST(SuggestionTest, IsTheEndOfASentence) {
  EXPECT_EQ(Suggestion("lokup", {"lookup"}), "; did you mean lookup?");
  EXPECT_EQ(Suggestion("append", {"lookup"}), "");
}

}  // namespace
}  // namespace softlookup::cli
