#include "server/rpc/rpc_server.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/base/event_order.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;

// A client's call, which it cancels.
class CancelledCall : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit CancelledCall(int port)
      : stub_(grpc::CreateChannel(absl::StrCat("127.0.0.1:", port),
                                  grpc::InsecureChannelCredentials())) {
    stub_.PrepareBidiStreamingCall(&context_, "/any/method", grpc::StubOptions(), this);
    BeforeEvent(this);
    StartCall();
  }
  ~CancelledCall() override { done_.WaitForNotification(); }
  void Cancel() { context_.TryCancel(); }
  void OnDone(const grpc::Status&) override {
    InEvent(this);
    done_.Notify();
  }

 private:
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  absl::Notification done_;
};

// Ends its call at once.
class EndingHandler : public Rpc::Handler {
 public:
  void Start(Rpc& rpc) {
    rpc.Attach(*this);
    rpc.Finish(grpc::Status::CANCELLED);
  }
  void OnCancel() override { is_cancelled = true; }
  void OnDone() override { done.Notify(); }

  std::atomic<bool> is_cancelled{false};
  absl::Notification done;
};

TEST(RpcServerTest, ACallOutlivesTheReportThatItWasCancelledBeforeItsHandlerCame) {
  absl::Notification accepted, cancelled, handled;
  EndingHandler handler;
  std::string peer_before, peer_after;
  RpcServer server(
      [&](Rpc& rpc) {
        accepted.Notify();
        cancelled.WaitForNotification();
        handler.Start(rpc);
        handled.Notify();
      },
      [&](const Rpc& rpc) {
        peer_before = rpc.peer();
        cancelled.Notify();
        handled.WaitForNotification();
        // The other thread would end the call now.
        EXPECT_FALSE(handler.done.WaitForNotificationWithTimeout(absl::Milliseconds(200)));
        peer_after = rpc.peer();
      });
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  ASSERT_THAT(server.Start(builder, /*thread_count=*/2), IsOk());
  CancelledCall call(port);
  accepted.WaitForNotification();
  call.Cancel();
  handler.done.WaitForNotification();
  EXPECT_EQ(peer_after, peer_before);
  EXPECT_THAT(peer_before, ::testing::HasSubstr("127.0.0.1"));
}

TEST(RpcServerTest, AHandlerThatComesAfterTheCancellationIsTold) {
  absl::Notification accepted, cancelled, is_over;
  EndingHandler handler, other_handler;
  std::atomic<int> accepted_count{0};
  RpcServer server(
      [&](Rpc& rpc) {
        if (accepted_count.fetch_add(1) == 1) {
          // There are two threads, and the first call holds one. So the other thread has done all
          // that it does for the cancellation.
          is_over.Notify();
          return other_handler.Start(rpc);
        }
        accepted.Notify();
        is_over.WaitForNotification();
        handler.Start(rpc);
      },
      [&](const Rpc&) { cancelled.Notify(); });
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  ASSERT_THAT(server.Start(builder, /*thread_count=*/2), IsOk());
  CancelledCall call(port);
  accepted.WaitForNotification();
  call.Cancel();
  cancelled.WaitForNotification();
  CancelledCall other_call(port);
  handler.done.WaitForNotification();
  other_handler.done.WaitForNotification();
  EXPECT_TRUE(handler.is_cancelled);
}

TEST(RpcServerTest, SeveralThreadsMayReadTheMetadataOfACall) {
  EndingHandler handler;
  std::array<std::size_t, 2> counts = {};
  RpcServer server(
      [&](Rpc& rpc) {
        const auto read = [&rpc](std::size_t* count) {
          *count = rpc.context().client_metadata().count("user-agent");
        };
        std::thread first(read, &counts[0]), second(read, &counts[1]);
        first.join();
        second.join();
        handler.Start(rpc);
      },
      [](const Rpc&) {});
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  ASSERT_THAT(server.Start(builder, /*thread_count=*/1), IsOk());
  CancelledCall call(port);
  handler.done.WaitForNotification();
  EXPECT_THAT(counts, ::testing::Each(1u));
}

TEST(RpcServerTest, AServerThatCannotListenSaysSo) {
  RpcServer server([](Rpc&) {}, [](const Rpc&) {});
  grpc::ServerBuilder builder;
  builder.AddListeningPort("256.0.0.1:0", grpc::InsecureServerCredentials());
  EXPECT_THAT(server.Start(builder, /*thread_count=*/1),
              StatusIs(absl::StatusCode::kInternal, "cannot start gRPC"));
}

}  // namespace
}  // namespace softlookup::server
