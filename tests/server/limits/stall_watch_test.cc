#include "server/limits/stall_watch.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/base/event_order.h"
#include "tests/testing/told_clock.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::ToldClock;

constexpr absl::Duration kTimeout = absl::Seconds(40);
constexpr absl::Duration kCheckInterval = absl::Seconds(10);

// A call whose server waits for a message of its client, and ends with OK once it has one.
class WaitingCall : public grpc::ServerGenericBidiReactor {
 public:
  WaitingCall(StallWatch& watch, std::size_t bytes, grpc::GenericCallbackServerContext& context,
              absl::Notification& waits)
      : waits_(watch, context) {
    waits_.OnStart(bytes);
    BeforeEvent(this);
    StartRead(&message_);
    waits.Notify();
  }
  void OnReadDone(bool ok) override {
    InEvent(this);
    waits_.OnDone();
    BeforeEvent(this);
    Finish(ok ? grpc::Status::OK : grpc::Status::CANCELLED);
  }
  void OnDone() override {
    InEvent(this);
    waits_.End();
    delete this;
  }

 private:
  StallWatch::Waits waits_;
  grpc::ByteBuffer message_;
};

// Takes one call, of any method.
class WaitingService : public grpc::CallbackGenericService {
 public:
  WaitingService(StallWatch& watch, std::size_t bytes) : watch_(watch), bytes_(bytes) {}
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    return new WaitingCall(watch_, bytes_, *context, waits_);
  }
  void AwaitCall() { waits_.WaitForNotification(); }

 private:
  StallWatch& watch_;
  const std::size_t bytes_;
  absl::Notification waits_;
};

// The client's side of a call.
class ClientCall : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit ClientCall(const std::shared_ptr<grpc::Channel>& channel) : stub_(channel) {
    stub_.PrepareBidiStreamingCall(&context_, "/any/method", grpc::StubOptions(), this);
    AddHold();
    BeforeEvent(this);
    StartCall();
  }
  void Send() { StartWriteLast(&message_, grpc::WriteOptions()); }
  grpc::Status AwaitEnd() {
    RemoveHold();
    done_.WaitForNotification();
    return status_;
  }
  void OnDone(const grpc::Status& status) override {
    InEvent(this);
    status_ = status;
    done_.Notify();
  }

 private:
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  const grpc::Slice slice_{"x"};
  const grpc::ByteBuffer message_{&slice_, 1};
  grpc::Status status_;
  absl::Notification done_;
};

// A real server with a call that waits for its client.
class StallWatchTest : public ::testing::Test {
 protected:
  // The message for which the call waits has `bytes`.
  void Begin(absl::Duration timeout, std::size_t bytes = 0) {
    watch_.emplace(timeout, "the client has sent nothing", clock_);
    service_.emplace(*watch_, bytes);
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(&*service_);
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    server_ = builder.BuildAndStart();
    caller_.emplace(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
    service_->AwaitCall();
  }

  // Lets `time` go by at once, and waits until the watch has checked its calls.
  void AdvanceToCheck(absl::Duration time) {
    clock_.AwaitWaits(++checks_);
    clock_.Advance(time);
    clock_.AwaitWaits(checks_ + 1);
  }
  // Lets `time`, at least the time between two checks, go by from check to check. Only the last may
  // be late, by less than that time.
  void Advance(absl::Duration time) {
    for (; time >= 2 * kCheckInterval; time -= kCheckInterval) AdvanceToCheck(kCheckInterval);
    AdvanceToCheck(time);
  }

  ToldClock clock_;
  int checks_ = 0;
  std::optional<StallWatch> watch_;
  std::optional<WaitingService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::optional<ClientCall> caller_;
};

TEST_F(StallWatchTest, ACallWhoseClientTakesTooLongEnds) {
  Begin(kTimeout);
  Advance(kTimeout);
  const grpc::Status status = caller_->AwaitEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "STREAM_STALLED: the client has sent nothing for 40s");
}

TEST_F(StallWatchTest, ACallWhoseClientIsInTimeGoesOn) {
  Begin(kTimeout);
  Advance(kTimeout - absl::Nanoseconds(1));
  caller_->Send();
  EXPECT_TRUE(caller_->AwaitEnd().ok());
}

TEST_F(StallWatchTest, AMessageMayTakeAsMuchAgainForEachMebibyte) {
  Begin(kTimeout, std::size_t{2} << 20);
  Advance(3 * kTimeout - absl::Nanoseconds(1));
  caller_->Send();
  EXPECT_TRUE(caller_->AwaitEnd().ok());
}

TEST_F(StallWatchTest, AMessageMayTakeNoLongerThanItsSizeAllows) {
  Begin(kTimeout, (std::size_t{3} << 20) - 1);
  Advance(3 * kTimeout);
  EXPECT_EQ(caller_->AwaitEnd().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(StallWatchTest, ChecksFourTimesInATimeout) {
  Begin(kTimeout);
  for (int check = 1; check <= 4; ++check) AdvanceToCheck(kCheckInterval);
  EXPECT_EQ(caller_->AwaitEnd().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(StallWatchTest, TimeInWhichTheProcessDidNotRunDoesNotCount) {
  Begin(kTimeout);
  AdvanceToCheck(10 * kTimeout);
  caller_->Send();
  EXPECT_TRUE(caller_->AwaitEnd().ok());
}

TEST_F(StallWatchTest, ALargeMessageKeepsItsTimeWhenTheProcessDidNotRun) {
  Begin(kTimeout, std::size_t{2} << 20);
  AdvanceToCheck(kTimeout);
  Advance(3 * kTimeout - 2 * kCheckInterval);
  caller_->Send();
  EXPECT_TRUE(caller_->AwaitEnd().ok());
}

TEST_F(StallWatchTest, TimeBeforeAndAfterTheProcessDidNotRunCounts) {
  Begin(kTimeout);
  AdvanceToCheck(kCheckInterval);
  AdvanceToCheck(10 * kTimeout);
  Advance(kTimeout - 2 * kCheckInterval);
  EXPECT_EQ(caller_->AwaitEnd().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(StallWatchTest, WithoutATimeoutNoCallEnds) {
  Begin(absl::InfiniteDuration());
  clock_.Advance(absl::Hours(1e5));
  watch_->EndAll("the server stops");
  caller_->Send();
  EXPECT_TRUE(caller_->AwaitEnd().ok());
}

TEST_F(StallWatchTest, EndAllEndsTheCallsThatWait) {
  Begin(kTimeout);
  watch_->EndAll("the server stops");
  const grpc::Status status = caller_->AwaitEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "the server stops");
}

}  // namespace
}  // namespace softlookup::server
