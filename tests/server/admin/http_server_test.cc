#include "server/admin/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/file_descriptor.h"
#include "server/base/listening.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/told_clock.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;
using ::softlookup::testing::ToldClock;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class HttpServerTest : public ::testing::Test {
 protected:
  HttpServerTest() {
    Serve([](const std::string& request) { return "answer to " + request; });
  }

  void Serve(HttpServer::Answer answer) {
    http_ = std::make_unique<HttpServer>(std::move(answer), clock_);
    absl::StatusOr<FileDescriptor> listener = ListenForHttp("127.0.0.1", 0);
    ASSERT_THAT(listener, IsOk());
    ASSERT_THAT(http_->Start(*std::move(listener)), IsOk());
  }

  FileDescriptor Connect() { return ConnectTo(http_->port()); }

  static FileDescriptor ConnectTo(int port) {
    FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(static_cast<std::uint16_t>(port))};
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
  std::unique_ptr<HttpServer> http_;
};

TEST_F(HttpServerTest, AnswersEachRequestWithWhatItIsTold) {
  EXPECT_EQ(Ask("GET /healthz HTTP/1.1\r\n\r\n"), "answer to GET /healthz HTTP/1.1\r\n\r\n");
  EXPECT_EQ(Ask("\xff\n\n"), "answer to \xff\n\n");
}

// More than a socket takes at once.
TEST_F(HttpServerTest, SendsALongAnswerWhole) {
  const std::string page(1'000'000, 'x');
  Serve([&](const std::string&) { return page; });
  EXPECT_EQ(Ask("GET /metrics HTTP/1.1\r\n\r\n"), page);
}

// Clients that ask for a long answer and do not read it keep no other client from its answer.
TEST_F(HttpServerTest, ScrapersThatDoNotReadDelayNobody) {
  Serve([](const std::string&) { return std::string(1'000'000, 'x'); });
  std::vector<FileDescriptor> slow;
  for (int i = 0; i < 30; ++i) {
    slow.push_back(Connect());
    Send(slow.back(), "GET /metrics HTTP/1.1\r\n\r\n");
  }
  EXPECT_EQ(Ask("GET /healthz HTTP/1.1\r\n\r\n").size(), 1'000'000u);
}

TEST_F(HttpServerTest, RefusesARequestThatIsTooLong) {
  EXPECT_THAT(Ask(std::string("GET /healthz HTTP/1.1\r\nX: ") + std::string(100'000, 'x')),
              StartsWith("HTTP/1.1 431 "));
}

TEST_F(HttpServerTest, ARequestMayComeInPieces) {
  const FileDescriptor socket = Connect();
  pollfd fd{socket.get(), POLLIN, 0};
  for (const char c : std::string("GET /healthz HTTP/1.1\r\n\r\n")) {
    EXPECT_EQ(poll(&fd, 1, 5), 0);
    ASSERT_TRUE(Send(socket, std::string(1, c)));
  }
  EXPECT_THAT(Receive(socket), StartsWith("answer to "));
}

TEST_F(HttpServerTest, ATakenPortIsAClearError) {
  EXPECT_THAT(ListenForHttp("127.0.0.1", http_->port()),
              StatusIs(absl::StatusCode::kUnavailable, "Address already in use"));
  EXPECT_THAT(ListenForHttp("no such host", 0),
              StatusIs(absl::StatusCode::kUnavailable, "no such"));
}

TEST_F(HttpServerTest, APortIsTakenAndSilentUntilItIsServed) {
  absl::StatusOr<FileDescriptor> listener = ListenForHttp("127.0.0.1", 0);
  ASSERT_THAT(listener, IsOk());
  const int port = PortOf(listener->get());
  EXPECT_THAT(ListenForHttp("127.0.0.1", port),
              StatusIs(absl::StatusCode::kUnavailable, "Address already in use"));
  const FileDescriptor early = ConnectTo(port);
  Send(early, "GET /healthz HTTP/1.1\r\n\r\n");
  pollfd fd{early.get(), POLLIN, 0};
  EXPECT_EQ(poll(&fd, 1, 0), 0);
  HttpServer http([](const std::string&) { return "late"; }, clock_);
  ASSERT_THAT(http.Start(*std::move(listener)), IsOk());
  EXPECT_EQ(Receive(early), "late");
}

TEST_F(HttpServerTest, ARequestThatDripsInIsCut) {
  const FileDescriptor dripping = Connect(), silent = Connect();
  const auto serve_one = [this] {
    EXPECT_THAT(Ask("GET /healthz HTTP/1.1\r\n\r\n"), StartsWith("answer to "));
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

TEST_F(HttpServerTest, SlowClientsDelayNobody) {
  std::vector<FileDescriptor> slow;
  for (int i = 0; i < 500; ++i) {
    slow.push_back(Connect());
    Send(slow.back(), "GET /healthz HTTP/1.1\r\nX: ");
    if (i % 50 == 0) {
      EXPECT_THAT(Ask("GET /healthz HTTP/1.1\r\n\r\n"), StartsWith("answer to "));
    }
  }
}

// It once waited for as long as the client liked.
TEST_F(HttpServerTest, SlowClientsDoNotDelayTheStop) {
  std::vector<FileDescriptor> sockets;
  for (int i = 0; i < 10; ++i) sockets.push_back(Connect());
  EXPECT_THAT(Ask("GET /healthz HTTP/1.1\r\n\r\n"), StartsWith("answer to "));
  std::vector<std::thread> clients;
  for (const FileDescriptor& socket : sockets) clients.emplace_back([&] { Drip(socket); });
  http_.reset();  // No connection's time is ever up, so this would never return if it waited.
  for (std::thread& client : clients) client.join();
}

}  // namespace
}  // namespace softlookup::server
