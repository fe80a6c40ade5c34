#include "server/admin/admin_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace softlookup::server {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class AdminPagesTest : public ::testing::Test {
 protected:
  bool is_ready_ = false;
  AdminPages pages_{[this] { return is_ready_; }, [] { return std::string("up 1\n"); }};
};

TEST_F(AdminPagesTest, SaysThatItLivesAndWhetherItIsReady) {
  EXPECT_THAT(pages_.Answer("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("\r\n\r\nok\n")));
  EXPECT_THAT(pages_.Answer("GET /readyz HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 503 "));
  is_ready_ = true;
  EXPECT_THAT(pages_.Answer("GET /readyz?verbose HTTP/1.0\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("\r\n\r\nready\n")));
}

TEST_F(AdminPagesTest, AHeadHasTheHeadersAndNoBody) {
  EXPECT_THAT(pages_.Answer("HEAD /healthz HTTP/1.1\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Content-Length: 3"),
                    EndsWith("\r\n\r\n")));
  EXPECT_THAT(pages_.Answer("HEAD /metrics HTTP/1.1\r\n\r\n"),
              AllOf(HasSubstr("Content-Length: 5"), EndsWith("\r\n\r\n")));
}

TEST_F(AdminPagesTest, MetricsHaveTheTypeOfPrometheus) {
  EXPECT_THAT(pages_.Answer("GET /metrics HTTP/1.1\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"),
                    EndsWith("\r\n\r\nup 1\n")));
}

TEST_F(AdminPagesTest, RefusesEverythingElse) {
  EXPECT_THAT(pages_.Answer("GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(pages_.Answer("GET /healthz/ HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(pages_.Answer("POST /healthz HTTP/1.1\r\nContent-Length: 9\r\n\r\nsome body"),
              StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(pages_.Answer("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  for (const char* request : {"\r\n\r\n", "\n\n", "GET\r\n\r\n", "GET /healthz\r\n\r\n",
                              "GET  /healthz HTTP/1.1\r\n\r\n", "\xff\xfe\r\n\r\n"}) {
    EXPECT_THAT(pages_.Answer(request), StartsWith("HTTP/1.1 400 ")) << request;
  }
}

}  // namespace
}  // namespace softlookup::server
