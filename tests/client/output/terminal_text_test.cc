#include "client/output/terminal_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "client/output/json.h"
#include "client/output/table.h"
#include "client/output/xml_text.h"

namespace softlookup::output {
namespace {

TEST(TerminalTextTest, LeavesTextAsItIs) {
  for (const char* text :
       {"", "acme/users", "a\\b", "\xc2\xa0", "caf\xc3\xa9", "\xe6\x97\xa5", "\xed\x9f\xbf",
        "\xee\x80\x80", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(TerminalText(text), text);
  }
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

TEST(TableTest, CellsHaveNoControlCharacters) {
  Table table({{"name"}, {"label"}});
  table.AddRow({"a\nb", "\x1b]0;title\x07"});
  std::ostringstream out;
  table.Print(&out);
  EXPECT_EQ(out.str(), "name  label\na\\nb  \\x1b]0;title\\x07\n");
}

TEST(JsonTest, PrintedJsonHasNoControlCharactersAndReadsBack) {
  const std::string text =
      "\x1b[2J\n\x7f\xc2\x9b"
      "2J caf\xc3\xa9";
  std::ostringstream out;
  PrintJson({{"label", text}}, &out);
  EXPECT_EQ(out.str(), "{\"label\":\"\\u001b[2J\\n\\u007f\\u009b2J caf\xc3\xa9\"}\n");
  EXPECT_EQ(nlohmann::json::parse(out.str())["label"], text);
}

TEST(JsonTest, PrintedJsonReplacesWhatIsNotUtf8) {
  std::ostringstream out;
  PrintJson({{"label", "a\xff"}}, &out);
  EXPECT_EQ(out.str(), "{\"label\":\"a\xef\xbf\xbd\"}\n");
}

TEST(XmlTextTest, EscapesMarkupControlCharactersAndWhatIsNotUtf8) {
  EXPECT_EQ(XmlText("<a href=\"x\">&</a>"), "&lt;a href=&quot;x&quot;&gt;&amp;&lt;/a&gt;");
  EXPECT_EQ(XmlText("a\x1b\x7f\xc2\x9b"
                    "b"),
            "a   b");
  EXPECT_EQ(XmlText("caf\xc3\xa9\xff"), "caf\xc3\xa9\xef\xbf\xbd");
}

}  // namespace
}  // namespace softlookup::output
