#include "client/cli/terminal_text.h"

#include <gtest/gtest.h>

#include <string>

#include "client/cli/utf8.h"

namespace softlookup::cli {
namespace {

TEST(TerminalTextTest, LeavesTextAsItIs) {
  for (const char* text :
       {"", "acme/users", "a\\b", "\xc2\xa0", "caf\xc3\xa9", "\xe6\x97\xa5", "\xed\x9f\xbf",
        "\xee\x80\x80", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(TerminalText(text), text);
  }
}

TEST(ExcerptTest, CutsALongTextBetweenCharacters) {
  const std::string whole(kExcerptBytesMax, 'a');
  EXPECT_EQ(Excerpt(""), "");
  EXPECT_EQ(Excerpt(whole), whole);
  EXPECT_EQ(Excerpt(whole + "b"), whole + "...");
  EXPECT_EQ(Excerpt(whole.substr(1) + "\xc3\xa9"), whole.substr(1) + "...");
  EXPECT_EQ(Excerpt(whole.substr(2) + "\xc3\xa9" + "b"), whole.substr(2) + "\xc3\xa9...");
  EXPECT_EQ(Excerpt(whole.substr(3) + "\xf0\x9f\x98\x80"), whole.substr(3) + "...");
}

TEST(TerminalTextTest, EscapesControlCharacters) {
  EXPECT_EQ(TerminalText("\x1b[2Jgone"), "\\x1b[2Jgone");
  EXPECT_EQ(TerminalText("a\rb\x07\x7f"), "a\\x0db\\x07\\x7f");
  EXPECT_EQ(TerminalText(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(TerminalText("one\ntwo\tthree"), "one\\ntwo\\tthree");
  // A terminal takes the C1 control U+009B for an escape and a bracket.
  EXPECT_EQ(TerminalText("\xc2\x9b"
                         "2J"),
            "\\xc2\\x9b2J");
  EXPECT_EQ(TerminalText("\xc2\x80\xc2\x9f"), "\\xc2\\x80\\xc2\\x9f");
}

TEST(TerminalTextTest, EscapesWhatTurnsTheDirectionOfText) {
  EXPECT_EQ(TerminalText("a\u202Eb"), "a\\xe2\\x80\\xaeb");
  for (const char* control : {"\u061C", "\u200E", "\u200F", "\u202A", "\u202B", "\u202C", "\u202D",
                              "\u202E", "\u2066", "\u2067", "\u2068", "\u2069"}) {
    EXPECT_TRUE(StartsWithControl(control));
    EXPECT_EQ(TerminalText(control).substr(0, 2), "\\x");
  }
  // Their neighbours, and Arabic and Hebrew letters.
  for (const char* text : {"\u061B", "\u061D", "\u200D", "\u2010", "\u2029", "\u202F", "\u2065",
                           "\u206A", "\u0628", "\u05D0"}) {
    EXPECT_FALSE(StartsWithControl(text));
    EXPECT_EQ(TerminalText(text), text);
  }
}

TEST(TerminalTextTest, EscapesWhatIsNotUtf8) {
  EXPECT_EQ(TerminalText("a\x9b"
                         "b\xff"),
            "a\\x9bb\\xff");
  EXPECT_EQ(TerminalText("\xc3"), "\\xc3");                    // Cut off.
  EXPECT_EQ(TerminalText("\xe6\x97"), "\\xe6\\x97");           // Cut off.
  EXPECT_EQ(TerminalText("\xe6\x97x"), "\\xe6\\x97x");         // A letter where one is due.
  EXPECT_EQ(TerminalText("\xc0\x9b"), "\\xc0\\x9b");           // Longer than need be.
  EXPECT_EQ(TerminalText("\xe0\x80\x9b"), "\\xe0\\x80\\x9b");  // Likewise.
  EXPECT_EQ(TerminalText("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // A surrogate.
  EXPECT_EQ(TerminalText("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // Over U+10FFFF.
  EXPECT_EQ(TerminalText("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");
}

TEST(TerminalTextTest, NoByteSurvivesThatATerminalObeys) {
  std::string all;
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      all += {static_cast<char>(first), static_cast<char>(second)};
    }
  }
  const std::string shown = TerminalText(all);
  for (std::string_view rest = shown; !rest.empty(); rest.remove_prefix(Utf8Length(rest))) {
    ASSERT_NE(Utf8Length(rest), 0u);
    ASSERT_FALSE(StartsWithControl(rest));
  }
}

}  // namespace
}  // namespace softlookup::cli
