#include "server/observability/line_format.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/time/time.h"

namespace softlookup::server {
namespace {

TEST(LineFormatTest, HasTheNamesOfTheFlag) {
  EXPECT_EQ(LineFormatOf("text"), LineFormat::kText);
  EXPECT_EQ(LineFormatOf("json"), LineFormat::kJson);
}

TEST(LineFormatTest, TheTimeIsInUtcWithMilliseconds) {
  const absl::Time time =
      absl::FromCivil(absl::CivilSecond(2024, 2, 29, 13, 5, 0), absl::UTCTimeZone());
  EXPECT_EQ(LineTime(time), "2024-02-29T13:05:00.000Z");
  EXPECT_EQ(LineTime(time + absl::Microseconds(250'999)), "2024-02-29T13:05:00.250Z");
}

TEST(LineFormatTest, AStringThatIsNoPlainWordIsQuotedInText) {
  EXPECT_EQ(FormatFields(LineFormat::kText, {{"peer", "ipv6:%5B::1%5D:80"},
                                             {"ms", 1.5},
                                             {"error", "x y"},
                                             {"store", "a=\"b\""},
                                             {"identity", ""}}),
            "peer=ipv6:%5B::1%5D:80 ms=1.5 error=\"x y\" store=\"a=\\\"b\\\"\" identity=\"\"");
}

TEST(LineFormatTest, JsonIsOneObjectInTheOrderOfItsFields) {
  EXPECT_EQ(FormatFields(LineFormat::kJson, {{"store", "a/b"}, {"rows", 7}}),
            R"({"store":"a/b","rows":7})");
}

TEST(LineFormatTest, EscapesWhatIsNotPrintableAscii) {
  const std::string hostile = "a\nb\x1b[2J\x7f\xc2\x9b";
  const std::string escaped = R"(a\nb\u001b[2J\u007f\u009b)";
  EXPECT_EQ(Printable(hostile), escaped);
  for (const LineFormat format : {LineFormat::kText, LineFormat::kJson}) {
    EXPECT_NE(FormatFields(format, {{"store", hostile}}).find(escaped), std::string::npos);
  }
}

TEST(LineFormatTest, ReplacesBytesThatAreNotUtf8) { EXPECT_EQ(Printable("a\xff"), R"(a\ufffd)"); }

TEST(LineFormatTest, PrintableTextKeepsItsQuotesAndEscapesItsBackslashes) {
  EXPECT_EQ(Printable(R"(cannot open "C:\x")"), R"(cannot open "C:\\x")");
}

}  // namespace
}  // namespace softlookup::server
