#include "server/observability/trace_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace softlookup::server {
namespace {

constexpr char kTraceId[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kParentId[] = "00f067aa0ba902b7";

TEST(TraceIdTest, IsThatOfAHeaderOfTheStandard) {
  EXPECT_EQ(TraceIdIn(absl::StrCat("00-", kTraceId, "-", kParentId, "-01")), kTraceId);
  EXPECT_EQ(TraceIdIn(absl::StrCat("00-", kTraceId, "-", kParentId, "-00")), kTraceId);
}

TEST(TraceIdTest, ALaterVersionMayAddToIt) {
  const std::string header = absl::StrCat("cc-", kTraceId, "-", kParentId, "-01");
  EXPECT_EQ(TraceIdIn(header), kTraceId);
  EXPECT_EQ(TraceIdIn(absl::StrCat(header, "-what-comes")), kTraceId);
  EXPECT_EQ(TraceIdIn(absl::StrCat(header, ".what-comes")), "");
}

TEST(TraceIdTest, AnythingElseIsIgnored) {
  const std::string rest = absl::StrCat("-", kParentId, "-01");
  const std::string header = absl::StrCat("00-", kTraceId, rest);
  for (std::size_t size = 0; size < header.size(); ++size) {
    EXPECT_EQ(TraceIdIn(header.substr(0, size)), "") << size;
  }
  for (std::size_t i = 0; i < header.size(); ++i) {
    for (const char c : {'g', 'A', ' ', '\n', '\0', '"', '\xff'}) {
      std::string other = header;
      other[i] = c;
      EXPECT_EQ(TraceIdIn(other), "") << other;
    }
  }
  for (const std::string& other :
       {absl::StrCat(header, "-01"), absl::StrCat(header, " "), absl::StrCat(" ", header),
        absl::StrCat("ff-", kTraceId, rest), absl::StrCat("00-", std::string(32, '0'), rest),
        absl::StrCat("00-", kTraceId, "-", std::string(16, '0'), "-01"),
        absl::StrCat("00-", kTraceId, "0", rest)}) {
    EXPECT_EQ(TraceIdIn(other), "") << other;
  }
}

}  // namespace
}  // namespace softlookup::server
