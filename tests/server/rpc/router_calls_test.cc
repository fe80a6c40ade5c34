#include "server/rpc/router_calls.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace softlookup::server {
namespace {

std::string ReasonOf(const grpc::Status& status) {
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  if (!details.ParseFromString(status.error_details()) || details.details_size() == 0) return "";
  return details.details(0).UnpackTo(&info) ? info.reason() : "";
}

// A call that ends with `status` at once; if it is OK, once it is cancelled.
class TestCall final : public Rpc::Handler {
 public:
  static void Start(Rpc& rpc, const grpc::Status& status, absl::Notification* over = nullptr) {
    auto* call = new TestCall(rpc, over);
    rpc.Attach(*call);
    if (!status.ok()) rpc.Finish(status);
  }
  void OnCancel() override {
    if (over_ != nullptr) rpc_.Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override {
    if (over_ != nullptr) over_->Notify();
    delete this;
  }

 private:
  TestCall(Rpc& rpc, absl::Notification* over) : rpc_(rpc), over_(over) {}

  Rpc& rpc_;
  absl::Notification* const over_;
};

class RouterCallsTest : public ::testing::Test {
 protected:
  RouterCallsTest() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    calls_.AddTo(builder);
    calls_.Start(builder.BuildAndStart(), /*thread_count=*/2);
    channel_ =
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials());
  }

  // Makes a call, and calls started() once it was sent.
  template <typename Started>
  grpc::Status Call(Started started) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    grpc::CompletionQueue queue;
    grpc::GenericStub stub(channel_);
    const auto call = stub.PrepareCall(&context, "/a/b", &queue);
    const auto wait = [&queue] {
      void* tag = nullptr;
      bool ok = false;
      EXPECT_TRUE(queue.Next(&tag, &ok));
    };
    call->StartCall(nullptr);
    wait();
    started();
    grpc::Status status;
    call->Finish(&status, nullptr);
    wait();
    return status;
  }
  grpc::Status Call() {
    return Call([] {});
  }

  std::shared_ptr<grpc::Channel> channel_;
  RouterCalls calls_;
};

TEST_F(RouterCallsTest, CallsArePassedOnOnlyWhileTheServerServes) {
  const grpc::Status loading = Call();
  EXPECT_EQ(loading.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonOf(loading), "LOADING");
  calls_.Serve([](Rpc& rpc) {
    TestCall::Start(rpc, grpc::Status(grpc::StatusCode::DATA_LOSS, rpc.path()));
  });
  EXPECT_EQ(Call().error_code(), grpc::StatusCode::DATA_LOSS);
  calls_.Refuse();
  const grpc::Status refused = Call();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonOf(refused), "SHUTTING_DOWN");
}

TEST_F(RouterCallsTest, StopWaitsForTheEndOfCallsInProgress) {
  absl::Notification came;
  absl::Notification over;
  calls_.Serve([&](Rpc& rpc) {
    TestCall::Start(rpc, grpc::Status::OK, &over);
    came.Notify();
  });
  const grpc::Status status = Call([&] {
    came.WaitForNotification();
    calls_.Stop();
    EXPECT_TRUE(over.HasBeenNotified());
  });
  EXPECT_FALSE(status.ok());
}

}  // namespace
}  // namespace softlookup::server
