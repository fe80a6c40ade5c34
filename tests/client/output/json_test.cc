#include "client/output/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace softlookup::output {
namespace {

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

TEST(JsonTest, PrintedJsonEscapesWhatTurnsTheDirectionOfTextAndReadsBack) {
  const std::string text = "a\u202Eb\u2069";
  std::ostringstream out;
  PrintJson({{"label", text}}, &out);
  EXPECT_EQ(out.str(), "{\"label\":\"a\\u202eb\\u2069\"}\n");
  EXPECT_EQ(nlohmann::json::parse(out.str())["label"], text);
}

}  // namespace
}  // namespace softlookup::output
