// What bounds connections, and what the server outlives of them.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "absl/base/config.h"
#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "server/base/file_descriptor.h"
#include "tests/faults/cycles.h"
#include "tests/integration/integration_test.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {
namespace {

using server::FileDescriptor;

// What a client of HTTP/2 says first, with a SETTINGS frame that sets nothing.
const std::string kPreface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", 33);
constexpr int kSettings = 4, kPing = 6;

// A bare connection to a server.
class RawConnection {
 public:
  explicit RawConnection(const std::string& address)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in peer{};
    peer.sin_family = AF_INET;
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    peer.sin_port = htons(static_cast<std::uint16_t>(port));
    peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<sockaddr*>(&peer), sizeof(peer)), 0);
  }

  void Send(const std::string& bytes) {
    send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  // The payload of the next frame of this type; nothing if the connection ends before.
  std::optional<std::string> AwaitFrame(int type) {
    for (;;) {
      const std::optional<std::string> header = Receive(9);
      if (!header) return std::nullopt;
      const auto byte = [&](int i) { return static_cast<unsigned char>((*header)[i]); };
      const std::optional<std::string> payload = Receive(byte(0) << 16 | byte(1) << 8 | byte(2));
      if (!payload || byte(3) == type) return payload;
    }
  }

  // Whether the server closes it within `time`; what it sends until then is thrown away.
  bool IsClosedWithin(absl::Duration time) {
    const absl::Time end = absl::Now() + time;
    char bytes[1024];
    for (;;) {
      pollfd fd{socket_.get(), POLLIN, 0};
      const auto left = absl::ToInt64Milliseconds(end - absl::Now());
      if (poll(&fd, 1, static_cast<int>(std::max<std::int64_t>(0, left))) <= 0) return false;
      if (recv(socket_.get(), bytes, sizeof(bytes), 0) <= 0) return true;
    }
  }

 private:
  std::optional<std::string> Receive(std::size_t count) {
    std::string bytes(count, '\0');
    if (count == 0) return bytes;
    const ssize_t received = recv(socket_.get(), bytes.data(), count, MSG_WAITALL);
    if (received != static_cast<ssize_t>(count)) return std::nullopt;
    return bytes;
  }

  FileDescriptor socket_;
};

// Lets this process have as many descriptors as it may; how many that is.
rlim_t RaiseDescriptorLimit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

grpc::Status GetStoreOver(const std::shared_ptr<grpc::Channel>& channel) {
  const auto stub = v1::SoftLookup::NewStub(channel);
  CallContext context;
  context.set_wait_for_ready(true);
  v1::GetStoreRequest request;
  request.set_name("s");
  v1::Store store;
  return stub->GetStore(&context, request, &store);
}

// A channel with a connection of its own.
std::shared_ptr<grpc::Channel> OwnChannel(const ServerProcess& server) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  return grpc::CreateCustomChannel(server.grpc_address(), grpc::InsecureChannelCredentials(),
                                   arguments);
}

class ConnectionsTest : public IntegrationTest {
 protected:
  explicit ConnectionsTest(const std::vector<std::string>& flags = {}) : IntegrationTest(flags) {
    Create("s", 2, 1);
  }
};

TEST_F(ConnectionsTest, ThousandsOfIdleOnesAreServedBesideAWorkingClient) {
  const int count = Cycles(1000, 5000);
  ASSERT_GT(RaiseDescriptorLimit(), static_cast<rlim_t>(count) + 100);
  std::vector<std::unique_ptr<RawConnection>> idle;
  for (int i = 0; i < count; ++i) {
    idle.push_back(std::make_unique<RawConnection>(server_.grpc_address()));
    idle.back()->Send(kPreface);
    if (i % 100 == 0) {
      ASSERT_THAT(Append(TwoRows()), IsGrpcOk());
    }
  }
  for (const auto& connection : idle) ASSERT_TRUE(connection->AwaitFrame(kSettings));
  for (int i = 0; i < 100; ++i) ASSERT_THAT(Append(TwoRows()), IsGrpcOk());
  EXPECT_THAT(GetStoreOver(OwnChannel(server_)), IsGrpcOk());
}

class FewConnectionsTest : public ConnectionsTest {
 protected:
  FewConnectionsTest() : ConnectionsTest({"--max-connections", "5"}) {}
};

TEST_F(FewConnectionsTest, OneBeyondTheLimitIsClosedAtOnceUntilThereIsRoom) {
  // The fixture's client and stub may have one each.
  std::vector<std::unique_ptr<RawConnection>> open;
  int closed = 0;
  for (int i = 0; i < 20; ++i) {
    auto connection = std::make_unique<RawConnection>(server_.grpc_address());
    connection->Send(kPreface);
    if (connection->AwaitFrame(kSettings)) {
      open.push_back(std::move(connection));
    } else {
      ++closed;
    }
  }
  EXPECT_GE(open.size(), 3u);
  EXPECT_LE(open.size(), 5u);
  EXPECT_EQ(closed + open.size(), 20u);
  EXPECT_THAT(Append(TwoRows()), IsGrpcOk()) << "open ones stay";
  open.clear();
  EXPECT_THAT(GetStoreOver(OwnChannel(server_)), IsGrpcOk());
}

class BoundedConnectionsTest : public ConnectionsTest {
 protected:
  BoundedConnectionsTest()
      : ConnectionsTest({"--handshake-timeout", "0.3", "--max-streams-per-connection", "7",
                         "--keepalive-seconds", "1"}) {}
};

TEST_F(BoundedConnectionsTest, OneThatSaysNothingIsClosed) {
  RawConnection silent(server_.grpc_address()), slow(server_.grpc_address());
  slow.Send(kPreface.substr(0, 10));
  EXPECT_TRUE(silent.IsClosedWithin(absl::Seconds(20)));
  EXPECT_TRUE(slow.IsClosedWithin(absl::Seconds(20)));
}

TEST_F(BoundedConnectionsTest, AClientHearsHowManyCallsItMayHaveInProgress) {
  RawConnection connection(server_.grpc_address());
  connection.Send(kPreface);
  const std::optional<std::string> settings = connection.AwaitFrame(kSettings);
  ASSERT_TRUE(settings);
  EXPECT_THAT(*settings, ::testing::HasSubstr(std::string("\0\x03\0\0\0\x07", 6)));
}

TEST_F(BoundedConnectionsTest, AnIdleOneIsAskedWhetherItIsAlive) {
  RawConnection connection(server_.grpc_address());
  connection.Send(kPreface);
  EXPECT_TRUE(connection.AwaitFrame(kPing));
}

TEST_F(ConnectionsTest, RunningOutOfDescriptorsIsOverWhenConnectionsClose) {
  if (BinariesAreSanitized()) {
    GTEST_SKIP() << "without descriptors, tsan cannot tell what tests/tsan.supp lists";
  }
  constexpr rlim_t kLimit = 256;
  const rlimit limit{.rlim_cur = kLimit, .rlim_max = kLimit};
  ASSERT_EQ(prlimit(server_.pid(), RLIMIT_NOFILE, &limit, nullptr), 0);
  ASSERT_THAT(Append(TwoRows()), IsGrpcOk());
  std::vector<std::unique_ptr<RawConnection>> flood;
  for (rlim_t i = 0; i < 2 * kLimit; ++i) {
    flood.push_back(std::make_unique<RawConnection>(server_.grpc_address()));
    flood.back()->Send(kPreface);
  }
  // Some are served; the others wait for descriptors.
  ASSERT_TRUE(flood.front()->AwaitFrame(kSettings));
  EXPECT_FALSE(flood.back()->IsClosedWithin(absl::Milliseconds(300)));
  for (int i = 0; i < 50; ++i) ASSERT_THAT(Append(TwoRows()), IsGrpcOk());
  flood.clear();
  EXPECT_THAT(GetStoreOver(OwnChannel(server_)), IsGrpcOk());
}

}  // namespace
}  // namespace softlookup::testing
