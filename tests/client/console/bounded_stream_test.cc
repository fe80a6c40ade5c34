#include "client/console/bounded_stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>

namespace softlookup::console {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr BoundedStream::Limits kWide = {
    .request_bytes = 100, .idle = hours(1), .request = hours(1), .answer = hours(1)};

class BoundedStreamTest : public ::testing::Test {
 protected:
  BoundedStreamTest() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_.data()), 0); }
  ~BoundedStreamTest() override {
    for (const int socket : sockets_) close(socket);
  }

  void Send(const std::string& text) {
    EXPECT_EQ(send(sockets_[1], text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }
  // Reads up to `size` bytes, and says so if there are none.
  static std::string Read(BoundedStream* stream, std::size_t size) {
    std::string text(size, '\0');
    const ssize_t count = stream->read(text.data(), size);
    return count < 0 ? "refused" : text.substr(0, static_cast<std::size_t>(count));
  }

  std::array<int, 2> sockets_;
};

TEST_F(BoundedStreamTest, ReadsAndWrites) {
  BoundedStream stream(sockets_[0], kWide);
  Send("hello");
  EXPECT_EQ(Read(&stream, 2), "he");
  EXPECT_TRUE(stream.is_readable());
  EXPECT_EQ(Read(&stream, 9), "llo");
  EXPECT_TRUE(stream.is_writable());
  EXPECT_EQ(stream.write("abc", 3), 3);
  std::string got(3, '\0');
  EXPECT_EQ(recv(sockets_[1], got.data(), got.size(), MSG_WAITALL), 3);
  EXPECT_EQ(got, "abc");
  shutdown(sockets_[1], SHUT_WR);
  EXPECT_EQ(Read(&stream, 9), "");
}

TEST_F(BoundedStreamTest, ARequestHasBoundedBytes) {
  BoundedStream::Limits limits = kWide;
  limits.request_bytes = 4;
  BoundedStream stream(sockets_[0], limits);
  Send("0123456789");
  EXPECT_EQ(Read(&stream, 100), "0123");
  EXPECT_FALSE(stream.is_readable());
  EXPECT_EQ(Read(&stream, 100), "refused");
  stream.AllowBytes(2);
  EXPECT_EQ(Read(&stream, 100), "45");
  EXPECT_EQ(Read(&stream, 100), "refused");
}

TEST_F(BoundedStreamTest, AnIdleConnectionIsNotAwaited) {
  BoundedStream::Limits limits = kWide;
  limits.idle = milliseconds(0);
  BoundedStream stream(sockets_[0], limits);
  EXPECT_EQ(Read(&stream, 1), "refused");
}

TEST_F(BoundedStreamTest, ARequestAndAnAnswerHaveBoundedTime) {
  BoundedStream::Limits limits = kWide;
  limits.request = milliseconds(0);
  limits.answer = milliseconds(0);
  BoundedStream stream(sockets_[0], limits);
  Send("a");
  EXPECT_EQ(Read(&stream, 1), "a");  // Within the time for the first byte.
  Send("b");
  EXPECT_EQ(Read(&stream, 1), "refused");
  EXPECT_EQ(stream.write("c", 1), -1);
}

TEST_F(BoundedStreamTest, AWriteToAClosedSocketFails) {
  BoundedStream stream(sockets_[0], kWide);
  shutdown(sockets_[1], SHUT_RDWR);
  EXPECT_EQ(stream.write("c", 1), -1);
}

}  // namespace
}  // namespace softlookup::console
