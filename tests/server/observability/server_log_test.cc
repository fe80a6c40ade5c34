#include "server/observability/server_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>

#include "server/observability/line_format.h"

namespace softlookup::server {
namespace {

using nlohmann::ordered_json;
using ::testing::MatchesRegex;

// What a client might send to make a line look like two, or like another.
const std::string kHostile = "a\nb\r\"\\ =\t\x1b[2J\x7f\xc2\x9b\xff\xfe\u2028";

class ServerLogTest : public ::testing::TestWithParam<LineFormat> {
 protected:
  ServerLogTest() {
    const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    const auto logger = std::make_shared<spdlog::logger>("test", sink);
    logger->set_formatter(MakeLineFormatter(GetParam()));
    before_ = spdlog::default_logger();
    spdlog::set_default_logger(logger);
  }
  ~ServerLogTest() override { spdlog::set_default_logger(before_); }

  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

INSTANTIATE_TEST_SUITE_P(, ServerLogTest, ::testing::Values(LineFormat::kText, LineFormat::kJson));

TEST_P(ServerLogTest, ALineHasTimeLevelMessageAndFields) {
  WriteServerLog(spdlog::level::warn, "slow lookup",
                 {{"store", "a/b"},
                  {"rows", 7},
                  {"ms", 1.5},
                  {"peer", "ipv4:127.0.0.1:80"},
                  {"error", "x y"}});
  if (GetParam() == LineFormat::kText) {
    EXPECT_THAT(text(),
                MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{3}Z warning slow "
                             "lookup store=a/b rows=7 ms=1.5 peer=ipv4:127.0.0.1:80 "
                             "error=\"x y\"\n"));
    return;
  }
  const ordered_json line = ordered_json::parse(text());
  EXPECT_THAT(line["time"].get<std::string>(),
              MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{3}Z"));
  EXPECT_EQ(line["level"], "warning");
  EXPECT_EQ(line["message"], "slow lookup");
  EXPECT_EQ(line["store"], "a/b");
  EXPECT_EQ(line["rows"], 7);
  EXPECT_EQ(line["ms"], 1.5);
  EXPECT_EQ(line.size(), 8u);
}

TEST_P(ServerLogTest, NobodyMakesALineLookLikeTwo) {
  WriteServerLog(spdlog::level::err, kHostile, {{"store", kHostile}});
  spdlog::info("{}", kHostile);  // Without fields.
  const std::string lines = text();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
  for (const char c : lines) EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << int{c};
  if (GetParam() == LineFormat::kText) return;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    const ordered_json object = ordered_json::parse(line);
    EXPECT_EQ(object["message"].get<std::string>().substr(0, 5), kHostile.substr(0, 5));
  }
}

TEST_P(ServerLogTest, ALineWithoutFieldsHasNoneOfTheLineBefore) {
  WriteServerLog(spdlog::level::info, "one", {{"store", "s"}});
  spdlog::info("two");
  const std::string second = text().substr(text().find('\n') + 1);
  EXPECT_THAT(second, ::testing::HasSubstr("two"));
  EXPECT_THAT(second, ::testing::Not(::testing::HasSubstr("store")));
}

}  // namespace
}  // namespace softlookup::server
