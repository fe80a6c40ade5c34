#include "core/storage/deleted_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace softlookup {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Ranges of one-letter keys. A key takes bytes as its place in the alphabet says: 'a' takes 1.
class DeletedRangesTest : public ::testing::Test {
 protected:
  static std::uint64_t BytesOf(const KeyRange& range) {
    std::uint64_t bytes = 0;
    for (char key = range.begin[0]; key < range.end[0]; ++key) {
      bytes += static_cast<std::uint64_t>(key - 'a') + 1;
    }
    return bytes;
  }
  // Adds the range [text[0], text[1]).
  void Add(const std::string& text) {
    ranges_.Add({.begin = text.substr(0, 1), .end = text.substr(1)},
                [this](const KeyRange& joined) {
                  measured_ = absl::StrCat(joined.begin, joined.end);
                  return BytesOf(joined);
                });
  }
  std::vector<std::string> RangesOfAtLeast(std::uint64_t bytes_min) const {
    std::vector<std::string> texts;
    for (const KeyRange& range : ranges_.RangesOfAtLeast(bytes_min)) {
      texts.push_back(absl::StrCat(range.begin, range.end));
    }
    return texts;
  }

  static constexpr std::size_t kCountMax = 4;
  DeletedRanges ranges_{kCountMax};
  std::string measured_;  // The last range that was measured.
};

TEST_F(DeletedRangesTest, RangesThatOverlapOrTouchAreOne) {
  Add("eg");
  Add("bc");
  EXPECT_THAT(RangesOfAtLeast(0), ElementsAre("bc", "eg"));
  EXPECT_EQ(ranges_.bytes(), 2u + 5u + 6u);
  const struct {
    const char* added;
    const char* joined;
  } kCases[] = {
      {"gh", "eh"},  // Touches at its begin.
      {"de", "dh"},  // Touches at its end.
      {"ef", "dh"},  // Lies within.
      {"gj", "dj"},  // Overlaps at its begin.
      {"ck", "bk"},  // Holds one, and touches another.
      {"al", "al"},  // Holds all.
  };
  for (const auto& [added, joined] : kCases) {
    SCOPED_TRACE(added);
    Add(added);
    EXPECT_EQ(measured_, joined);
  }
  EXPECT_THAT(RangesOfAtLeast(0), ElementsAre("al"));
  EXPECT_EQ(ranges_.bytes(), BytesOf({"a", "l"}));
}

TEST_F(DeletedRangesTest, TheLastRangeOfManyJoinsThem) {
  DeletedRanges ranges(/*count_max=*/1000);
  const auto add = [&](int number) {
    ranges.Add({absl::StrCat(1000 + number), absl::StrCat(1001 + number)},
               [](const KeyRange& joined) {
                 return static_cast<std::uint64_t>(std::stoi(joined.end) - std::stoi(joined.begin));
               });
  };
  // Every other one first, and one of them twice.
  for (int number = 0; number < 100; number += 2) add(number);
  EXPECT_EQ(ranges.RangesOfAtLeast(1).size(), 50u);
  for (int number = 99; number > 0; number -= 2) add(number);
  add(50);
  const std::vector<KeyRange> joined = ranges.RangesOfAtLeast(100);
  ASSERT_EQ(joined.size(), 1u);
  EXPECT_EQ(joined[0].begin, "1000");
  EXPECT_EQ(joined[0].end, "1100");
  EXPECT_EQ(ranges.bytes(), 100u);
}

TEST_F(DeletedRangesTest, OnlyLargeRangesAreReturned) {
  for (const char* range : {"xy", "ab", "cd"}) Add(range);
  EXPECT_THAT(RangesOfAtLeast(3), ElementsAre("cd", "xy"));
  EXPECT_THAT(RangesOfAtLeast(4), ElementsAre("xy"));
  EXPECT_THAT(RangesOfAtLeast(25), IsEmpty());
}

TEST_F(DeletedRangesTest, OfTooManyTheSmallestHalfIsForgotten) {
  for (const char* range : {"xy", "ab", "ef", "cd"}) Add(range);
  EXPECT_THAT(RangesOfAtLeast(0), ElementsAre("ab", "cd", "ef", "xy"));
  Add("gh");
  EXPECT_THAT(RangesOfAtLeast(0), ElementsAre("ef", "gh", "xy"));
  EXPECT_EQ(ranges_.bytes(), 5u + 7u + 24u);
}

TEST_F(DeletedRangesTest, OfTooManyThatTakeTheSameHalfIsForgotten) {
  const auto none = [](const KeyRange&) { return std::uint64_t{0}; };
  Add("xy");
  for (const char* begin : {"a", "c", "e"}) ranges_.Add({begin, absl::StrCat(begin, "z")}, none);
  ranges_.Add({"g", "h"}, none);
  const std::vector<std::string> left = RangesOfAtLeast(0);
  EXPECT_EQ(left.size(), kCountMax / 2 + 1);
  EXPECT_EQ(left.back(), "xy");
  EXPECT_EQ(ranges_.bytes(), 24u);
}

TEST_F(DeletedRangesTest, NothingIsLeftOnceCleared) {
  EXPECT_TRUE(ranges_.empty());
  Add("bc");
  EXPECT_FALSE(ranges_.empty());
  ranges_.Clear();
  EXPECT_TRUE(ranges_.empty());
  EXPECT_EQ(ranges_.bytes(), 0u);
  EXPECT_THAT(RangesOfAtLeast(0), IsEmpty());
  Add("bc");
  EXPECT_EQ(ranges_.bytes(), 2u);
}

}  // namespace
}  // namespace softlookup
