#include "server/rpc/connection_listener.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/rpc/file_descriptor.h"
#include "server/rpc/listening.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;

// A client's end of a connection to `host`.
class Client {
 public:
  Client(const std::string& host, int port) {
    const bool is_v6 = host.find(':') != std::string::npos;
    sockaddr_storage address{};
    socklen_t size = is_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    address.ss_family = is_v6 ? AF_INET6 : AF_INET;
    reinterpret_cast<sockaddr_in*>(&address)->sin_port = htons(static_cast<uint16_t>(port));
    void* bytes = &reinterpret_cast<sockaddr_in*>(&address)->sin_addr;
    if (is_v6) bytes = &reinterpret_cast<sockaddr_in6*>(&address)->sin6_addr;
    inet_pton(address.ss_family, host.c_str(), bytes);
    socket_ = FileDescriptor(socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), size);
    getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    const int own_port = ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
    name_ = is_v6 ? absl::StrCat("ipv6:%5B", host, "%5D:", own_port)
                  : absl::StrCat("ipv4:", host, ":", own_port);
  }

  // As gRPC names it.
  const std::string& name() const { return name_; }
  void Send(const std::string& bytes) { send(socket_.get(), bytes.data(), bytes.size(), 0); }
  // Waits until there is something to read, or the connection has ended.
  bool IsReset() {
    char byte = 0;
    return recv(socket_.get(), &byte, 1, 0) < 0 && errno == ECONNRESET;
  }

 private:
  FileDescriptor socket_;
  std::string name_;
};

class ConnectionListenerTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!listener_.Bind(GetParam(), 0).ok()) GTEST_SKIP() << "this machine has no " << GetParam();
    ASSERT_THAT(listener_.Start(2, absl::Seconds(20),
                                [this](int, int fd) {
                                  absl::MutexLock lock(&mutex_);
                                  taken_.emplace_back(fd);
                                }),
                IsOk());
  }
  void TearDown() override { listener_.Stop(); }

  Client Connect() { return Client(GetParam(), listener_.port()); }
  // Waits for the connection of that number to be taken.
  int Taken(std::size_t number) {
    const auto is_taken = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return taken_.size() > number;
    };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&is_taken));
    return taken_[number].get();
  }

  absl::Mutex mutex_;
  std::vector<FileDescriptor> taken_ ABSL_GUARDED_BY(mutex_);
  ConnectionListener listener_;
};

// How many bytes the server's end has to read, once there are any; none or -1 if it was cut.
ssize_t BytesToRead(int fd) {
  pollfd one{fd, POLLIN, 0};
  poll(&one, 1, -1);
  char bytes[64];
  return recv(fd, bytes, sizeof(bytes), MSG_PEEK);
}

TEST(IsOfLostConnectionTest, IsFalseForWhatStaysInTheQueue) {
  for (const int error : {ECONNABORTED, EINTR, EPROTO, ENETUNREACH}) {
    EXPECT_TRUE(IsOfLostConnection(error)) << error;
  }
  for (const int error : {EAGAIN, EMFILE, ENFILE, ENOBUFS, ENOMEM, EPERM, EACCES, EINVAL}) {
    EXPECT_FALSE(IsOfLostConnection(error)) << error;
  }
}

TEST_P(ConnectionListenerTest, CutsOneConnectionAndDropsWhatCameOfIt) {
  Client cut = Connect();
  const int cut_fd = Taken(0);
  Client other = Connect();
  const int other_fd = Taken(1);
  cut.Send("flood");
  other.Send("call");
  ASSERT_EQ(BytesToRead(cut_fd), 5);

  listener_.Cut(cut.name());

  EXPECT_TRUE(cut.IsReset());
  EXPECT_LE(BytesToRead(cut_fd), 0);
  EXPECT_EQ(BytesToRead(other_fd), 4);
}

TEST_P(ConnectionListenerTest, CutsNobodyElse) {
  Client client = Connect();
  const int fd = Taken(0);
  listener_.Cut("ipv4:127.0.0.1:1");
  listener_.Cut("");
  client.Send("call");
  EXPECT_EQ(BytesToRead(fd), 4);
}

INSTANTIATE_TEST_SUITE_P(Families, ConnectionListenerTest, ::testing::Values("127.0.0.1", "::1"));

}  // namespace
}  // namespace softlookup::server
