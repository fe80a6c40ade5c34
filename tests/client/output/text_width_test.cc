#include "client/output/text_width.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace softlookup::output {
namespace {

TEST(TextWidthTest, CountsTheColumnsOfATerminal) {
  for (const auto& [text, width] :
       std::vector<std::pair<std::string, std::size_t>>{{"", 0},
                                                        {"people", 6},
                                                        {"naïve", 5},
                                                        {"nai\u0308ve", 5},
                                                        {"12 µs", 5},
                                                        {"люди", 4},
                                                        {"日本語", 6},
                                                        {"かが", 4},
                                                        {"か\u3099", 2},
                                                        {"한국어", 6},
                                                        {"ＡＢ", 4},
                                                        {"ｱｲ", 2},
                                                        {"\U0001F600", 2},
                                                        {"a\u200bb", 2},
                                                        {"\u2764\ufe0f", 1},
                                                        {"\U00020000", 2},
                                                        {"\U0001F1E6", 1}}) {
    EXPECT_EQ(TextWidth(text), width) << text;
  }
  EXPECT_EQ(TextWidth("a\xff\xe6\x97"), 4u);  // Three bytes are not UTF-8.
}

TEST(ShortenedTextTest, KeepsWhatFitsAndNeverPartOfACharacter) {
  EXPECT_EQ(ShortenedText("people", 6), "people");
  EXPECT_EQ(ShortenedText("people", 5), "pe...");
  EXPECT_EQ(ShortenedText("people", 3), "...");
  EXPECT_EQ(ShortenedText("日本語", 6), "日本語");
  EXPECT_EQ(ShortenedText("日本語", 5), "日...");
  EXPECT_EQ(ShortenedText("日本語", 4), "...");
  EXPECT_EQ(ShortenedText("nai\u0308ve store", 6), "nai\u0308...");
  EXPECT_EQ(ShortenedText("", 3), "");
}

}  // namespace
}  // namespace softlookup::output
