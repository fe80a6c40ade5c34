#include "server/admin/admin_http.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "server/rpc/file_descriptor.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/told_clock.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;
using ::softlookup::testing::ToldClock;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class AdminHttpTest : public ::testing::Test {
 protected:
  AdminHttpTest() { EXPECT_THAT(http_->Start("127.0.0.1", 0), IsOk()); }

  FileDescriptor Connect() {
    FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{.sin_family = AF_INET,
                        .sin_port = htons(static_cast<std::uint16_t>(http_->port()))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return socket;
  }

  static bool Send(const FileDescriptor& socket, const std::string& text) {
    return send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }

  // What comes until the server ends the connection.
  static std::string Receive(const FileDescriptor& socket) {
    std::string text;
    std::array<char, 4096> bytes;
    ssize_t count = 0;
    while ((count = recv(socket.get(), bytes.data(), bytes.size(), 0)) > 0) {
      text.append(bytes.data(), static_cast<std::size_t>(count));
    }
    return text;
  }

  std::string Ask(const std::string& request) {
    const FileDescriptor socket = Connect();
    Send(socket, request);
    return Receive(socket);
  }

  // Sends a byte every 20 ms until the server cuts the connection.
  static void Drip(const FileDescriptor& socket) {
    pollfd fd{socket.get(), POLLIN, 0};
    while (poll(&fd, 1, 20) == 0 && Send(socket, "x")) {
    }
  }

  ToldClock clock_;  // Stands still unless a test tells it otherwise.
  std::unique_ptr<AdminHttp> http_ = std::make_unique<AdminHttp>(clock_);
};

TEST_F(AdminHttpTest, SaysThatItLivesAndWhetherItIsReady) {
  EXPECT_THAT(Ask("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"),
              ::testing::AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("\r\n\r\nok\n")));
  EXPECT_THAT(Ask("GET /readyz HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 503 "));
  http_->set_ready(true);
  EXPECT_THAT(Ask("GET /readyz?verbose HTTP/1.0\r\n\r\n"),
              ::testing::AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("\r\n\r\nready\n")));
  EXPECT_THAT(Ask("HEAD /healthz HTTP/1.1\r\n\r\n"),
              ::testing::AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Content-Length: 3"),
                               EndsWith("\r\n\r\n")));
}

// More than a socket takes at once.
TEST_F(AdminHttpTest, ServesMetricsWhole) {
  http_ = std::make_unique<AdminHttp>(clock_);
  const std::string page(1'000'000, 'x');
  http_->set_metrics([&] { return page; });
  ASSERT_THAT(http_->Start("127.0.0.1", 0), IsOk());
  const std::string answer = Ask("GET /metrics HTTP/1.1\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"));
  EXPECT_EQ(answer.substr(answer.find("\r\n\r\n") + 4), page);
  EXPECT_THAT(Ask("HEAD /metrics HTTP/1.1\r\n\r\n"),
              ::testing::AllOf(HasSubstr("Content-Length: 1000000"), EndsWith("\r\n\r\n")));
}

// Clients that ask for it and do not read it keep no other client from its answer.
TEST_F(AdminHttpTest, ScrapersThatDoNotReadDelayNobody) {
  http_ = std::make_unique<AdminHttp>(clock_);
  http_->set_metrics([] { return std::string(1'000'000, 'x'); });
  ASSERT_THAT(http_->Start("127.0.0.1", 0), IsOk());
  std::vector<FileDescriptor> slow;
  for (int i = 0; i < 30; ++i) {
    slow.push_back(Connect());
    Send(slow.back(), "GET /metrics HTTP/1.1\r\n\r\n");
  }
  EXPECT_THAT(Ask("GET /healthz HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(AdminHttpTest, RefusesEverythingElse) {
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Ask("GET /healthz/ HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Ask("POST /healthz HTTP/1.1\r\nContent-Length: 9\r\n\r\nsome body"),
              StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(Ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  for (const char* request : {"\r\n\r\n", "\n\n", "GET\r\n\r\n", "GET /healthz\r\n\r\n",
                              "GET  /healthz HTTP/1.1\r\n\r\n", "\xff\xfe\r\n\r\n"}) {
    EXPECT_THAT(Ask(request), StartsWith("HTTP/1.1 400 ")) << request;
  }
  EXPECT_THAT(Ask(std::string("GET /healthz HTTP/1.1\r\nX: ") + std::string(100'000, 'x')),
              StartsWith("HTTP/1.1 431 "));
}

TEST_F(AdminHttpTest, ARequestMayComeInPieces) {
  const FileDescriptor socket = Connect();
  pollfd fd{socket.get(), POLLIN, 0};
  for (const char c : std::string("GET /healthz HTTP/1.1\r\n\r\n")) {
    EXPECT_EQ(poll(&fd, 1, 5), 0);
    ASSERT_TRUE(Send(socket, std::string(1, c)));
  }
  EXPECT_THAT(Receive(socket), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(AdminHttpTest, ATakenPortIsAClearError) {
  AdminHttp second;
  EXPECT_THAT(second.Start("127.0.0.1", http_->port()),
              StatusIs(absl::StatusCode::kUnavailable, "is the port taken?"));
  EXPECT_THAT(second.Start("no such host", 0), StatusIs(absl::StatusCode::kUnavailable, "no such"));
}

TEST_F(AdminHttpTest, ARequestThatDripsInIsCut) {
  const FileDescriptor dripping = Connect(), silent = Connect();
  const auto serve_one = [this] {
    EXPECT_THAT(Ask("GET /healthz HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
  };
  serve_one();  // Connections are accepted in their order: both are by now.
  clock_.Advance(absl::Seconds(2) - absl::Nanoseconds(1));
  EXPECT_TRUE(Send(dripping, "x"));
  serve_one();
  for (const FileDescriptor* socket : {&dripping, &silent}) {
    pollfd fd{socket->get(), POLLIN, 0};
    EXPECT_EQ(poll(&fd, 1, 0), 0);
  }
  clock_.Advance(absl::Nanoseconds(1));
  Drip(dripping);
  EXPECT_THAT(Receive(silent), IsEmpty());
}

TEST_F(AdminHttpTest, SlowClientsDelayNobody) {
  std::vector<FileDescriptor> slow;
  for (int i = 0; i < 500; ++i) {
    slow.push_back(Connect());
    Send(slow.back(), "GET /healthz HTTP/1.1\r\nX: ");
    if (i % 50 == 0) {
      EXPECT_THAT(Ask("GET /healthz HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
    }
  }
}

// It once waited for as long as the client liked.
TEST_F(AdminHttpTest, SlowClientsDoNotDelayTheStop) {
  std::vector<FileDescriptor> sockets;
  for (int i = 0; i < 10; ++i) sockets.push_back(Connect());
  EXPECT_THAT(Ask("GET /healthz HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
  std::vector<std::thread> clients;
  for (const FileDescriptor& socket : sockets) clients.emplace_back([&] { Drip(socket); });
  http_.reset();  // No connection's time is ever up, so this would never return if it waited.
  for (std::thread& client : clients) client.join();
}

}  // namespace
}  // namespace softlookup::server
