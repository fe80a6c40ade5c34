#include "server/rpc/open_connections.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <utility>

#include "server/base/file_descriptor.h"
#include "server/base/listening.h"
#include "tests/server/rpc/tcp_client.h"

namespace softlookup::server {
namespace {

class OpenConnectionsTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    TcpAddress address(GetParam(), 0);
    listener_ = FileDescriptor(socket(address.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (bind(listener_.get(), address.get(), address.size) != 0) {
      GTEST_SKIP() << "this machine has no " << GetParam();
    }
    ASSERT_EQ(listen(listener_.get(), SOMAXCONN), 0);
  }

  TcpClient Connect() { return TcpClient(GetParam(), PortOf(listener_.get())); }
  // Accepts the connection of the next client. The listener waits for it, as it is blocking.
  FileDescriptor Accept() {
    OpenConnections::Accepted accepted = connections_.Accept(listener_.get());
    EXPECT_EQ(accepted.error, 0);
    return std::move(accepted.socket);
  }

  FileDescriptor listener_;
  OpenConnections connections_{2};
};

TEST_P(OpenConnectionsTest, CutsOneConnectionAndDropsWhatCameOfIt) {
  TcpClient cut = Connect();
  const FileDescriptor cut_socket = Accept();
  TcpClient other = Connect();
  const FileDescriptor other_socket = Accept();
  cut.Send("flood");
  other.Send("call");
  ASSERT_EQ(BytesToRead(cut_socket.get()), 5);

  EXPECT_TRUE(connections_.Cut(cut.name()));

  EXPECT_TRUE(cut.IsReset());
  EXPECT_LE(BytesToRead(cut_socket.get()), 0);
  EXPECT_EQ(BytesToRead(other_socket.get()), 4);
}

TEST_P(OpenConnectionsTest, CutsNobodyElse) {
  TcpClient client = Connect();
  const FileDescriptor socket = Accept();
  EXPECT_FALSE(connections_.Cut("ipv4:127.0.0.1:1"));
  EXPECT_FALSE(connections_.Cut(""));
  client.Send("call");
  EXPECT_EQ(BytesToRead(socket.get()), 4);
}

TEST_P(OpenConnectionsTest, AClosedConnectionMakesRoomForOneOther) {
  const TcpClient first = Connect();
  FileDescriptor first_socket = Accept();
  const TcpClient second = Connect();
  const FileDescriptor second_socket = Accept();
  first_socket = FileDescriptor();  // Moves the old descriptor into the temporary, which closes it.
  const TcpClient third = Connect();
  const FileDescriptor third_socket = Accept();
  EXPECT_GE(third_socket.get(), 0);
  TcpClient fourth = Connect();
  EXPECT_LT(Accept().get(), 0);
  EXPECT_TRUE(fourth.IsClosed());
}

INSTANTIATE_TEST_SUITE_P(Families, OpenConnectionsTest, ::testing::Values("127.0.0.1", "::1"));

}  // namespace
}  // namespace softlookup::server
