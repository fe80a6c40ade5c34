#include "server/rpc/grpc_port.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <memory>
#include <sstream>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/rpc/rpc_server.h"
#include "softlookup/v1/soft_lookup.grpc.pb.h"
#include "tests/server/rpc/tcp_client.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;

// A call that is refused at once.
class AbortedCall final : public Rpc::Handler {
 public:
  static void Start(Rpc& rpc) {
    rpc.Attach(*new AbortedCall);
    rpc.Finish(grpc::Status(grpc::StatusCode::ABORTED, "no"));
  }
  void OnDone() override { delete this; }
};

// A port for two connections, and a server that refuses all calls.
class GrpcPortTest : public ::testing::Test {
 protected:
  GrpcPortTest() {
    const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink));
    EXPECT_THAT(port_.Bind("127.0.0.1", 0), IsOk());
    grpc::ServerBuilder builder;
    port_.AddTo(builder, grpc::InsecureServerCredentials());
    EXPECT_THAT(server_.Start(builder, /*thread_count=*/2), IsOk());
    EXPECT_THAT(port_.Start(), IsOk());
    channel_ = grpc::CreateChannel(absl::StrCat("127.0.0.1:", port_.port()),
                                   grpc::InsecureChannelCredentials());
  }
  ~GrpcPortTest() override {
    port_.Stop();
    spdlog::set_default_logger(before_);
  }

  grpc::Status Call() {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    v1::Store store;
    return v1::SoftLookup::NewStub(channel_)->GetStore(&context, {}, &store);
  }
  // The peer of the last call, as gRPC names it.
  std::string last_peer() const {
    absl::MutexLock lock(&mutex_);
    return peer_;
  }

  std::ostringstream text_;
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  mutable absl::Mutex mutex_;
  std::string peer_ ABSL_GUARDED_BY(mutex_);
  GrpcPort port_{{.connections_max = 2,
                  .streams_per_connection_max = 100,
                  .handshake_timeout = absl::Minutes(1),
                  .keepalive = absl::Minutes(1)}};
  RpcServer server_{[this](Rpc& rpc) {
                      {
                        absl::MutexLock lock(&mutex_);
                        peer_ = rpc.peer();
                      }
                      AbortedCall::Start(rpc);
                    },
                    [](const Rpc&) {}};
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(GrpcPortTest, PassesConnectionsToTheServerUpToTheMaximum) {
  EXPECT_TRUE(port_.is_loopback());
  EXPECT_EQ(Call().error_message(), "no");
  TcpClient second("127.0.0.1", port_.port());
  TcpClient third("127.0.0.1", port_.port());
  EXPECT_TRUE(third.IsClosed());
}

TEST_F(GrpcPortTest, CutsAConnectionAndLogsWhy) {
  port_.Cut("ipv4:127.0.0.1:1", "is not open");
  EXPECT_EQ(Call().error_message(), "no");
  ASSERT_EQ(channel_->GetState(/*try_to_connect=*/false), GRPC_CHANNEL_READY);
  const std::string peer = last_peer();
  port_.Cut(peer, "floods");
  channel_->WaitForStateChange(GRPC_CHANNEL_READY, std::chrono::system_clock::time_point::max());
  EXPECT_EQ(Call().error_message(), "no") << "it may come back";
  EXPECT_THAT(text_.str(), ::testing::EndsWith(
                               absl::StrCat("cut the connection of ", peer, ", which floods\n")));
  EXPECT_THAT(text_.str(), ::testing::Not(::testing::HasSubstr("is not open")));
}

}  // namespace
}  // namespace softlookup::server
