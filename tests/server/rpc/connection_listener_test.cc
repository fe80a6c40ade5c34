#include "server/rpc/connection_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "server/base/file_descriptor.h"
#include "server/base/listening.h"
#include "tests/server/rpc/tcp_client.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;

class ConnectionListenerTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!listener_.Bind(GetParam(), 0).ok()) GTEST_SKIP() << "this machine has no " << GetParam();
    ASSERT_THAT(listener_.Start(absl::Seconds(20),
                                [this](int, int fd) {
                                  absl::MutexLock lock(&mutex_);
                                  taken_.emplace_back(fd);
                                }),
                IsOk());
  }
  void TearDown() override { listener_.Stop(); }

  TcpClient Connect() { return TcpClient(GetParam(), listener_.port()); }
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
  OpenConnections connections_{2};
  ConnectionListener listener_{connections_};
};

TEST(IsOfLostConnectionTest, IsFalseForWhatStaysInTheQueue) {
  for (const int error : {ECONNABORTED, EINTR, EPROTO, ENETUNREACH}) {
    EXPECT_TRUE(IsOfLostConnection(error)) << error;
  }
  for (const int error : {EAGAIN, EMFILE, ENFILE, ENOBUFS, ENOMEM, EPERM, EACCES, EINVAL}) {
    EXPECT_FALSE(IsOfLostConnection(error)) << error;
  }
}

TEST_P(ConnectionListenerTest, APortThatCannotBeHadIsAnErrorThatSaysWhy) {
  OpenConnections connections(2);
  ConnectionListener second(connections);
  EXPECT_THAT(second.Bind(GetParam(), listener_.port()),
              StatusIs(absl::StatusCode::kUnavailable, "Address already in use"));
  // An address for documents, which no machine has.
  EXPECT_THAT(second.Bind("192.0.2.1", 0),
              StatusIs(absl::StatusCode::kUnavailable, "Cannot assign requested address"));
  EXPECT_THAT(second.Bind("no such host", 0),
              StatusIs(absl::StatusCode::kUnavailable, "unknown host"));
}

TEST_P(ConnectionListenerTest, PassesConnectionsOnUpToTheMaximum) {
  TcpClient first = Connect();
  const int first_fd = Taken(0);
  TcpClient second = Connect();
  const int second_fd = Taken(1);
  TcpClient third = Connect();
  EXPECT_TRUE(third.IsClosed());
  first.Send("one");
  second.Send("second");
  EXPECT_EQ(BytesToRead(first_fd), 3);
  EXPECT_EQ(BytesToRead(second_fd), 6);
}

TEST_P(ConnectionListenerTest, AConnectionThatItPassedOnCanBeCut) {
  TcpClient client = Connect();
  const int fd = Taken(0);
  client.Send("flood");
  ASSERT_EQ(BytesToRead(fd), 5);
  EXPECT_TRUE(connections_.Cut(client.name()));
  EXPECT_TRUE(client.IsReset());
  EXPECT_LE(BytesToRead(fd), 0);
}

INSTANTIATE_TEST_SUITE_P(Families, ConnectionListenerTest, ::testing::Values("127.0.0.1", "::1"));

}  // namespace
}  // namespace softlookup::server
