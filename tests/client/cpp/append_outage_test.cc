// How long an append stream with a writer goes on without an answer, and how it then ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "softlookup/append_stream.h"
#include "softlookup/client.h"
#include "tests/client/cpp/resuming_stream_fixture.h"

namespace softlookup {
namespace {

using ::softlookup::testing::DetailedStatus;
using ::softlookup::testing::kGone;
using ::softlookup::testing::ResumingAppendStreamTest;
using ::softlookup::testing::ScriptedService;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

class AppendOutageTest : public ResumingAppendStreamTest {};

TEST_F(AppendOutageTest, OutageEndsTheStreamAtItsMost) {
  {
    absl::MutexLock lock(&mutex_);
    connections_.assign(10'000, {.applied = 0, .end = kGone});
    connections_[0].applied = 1;
  }
  const absl::Status status = Run(3, {.outage_max = absl::Milliseconds(500)}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  // It may end while the next attempt is on its way, and is then said of that one.
  EXPECT_THAT(std::string(status.message()),
              AnyOf("gone (rows acknowledged: 2)",
                    "the server cannot be reached or does not answer; before that: gone (rows "
                    "acknowledged: 2)"));
  absl::MutexLock lock(&mutex_);
  EXPECT_GT(streams_, 4);  // RetryOptions::attempts_max does not count.
}

TEST_F(AppendOutageTest, ServerThatDoesNotComeBackEndsTheStream) {
  auto server = std::make_unique<ScriptedService>();
  server->get_writer = service_.get_writer;
  AppendStream stream =
      *Client::Connect(server->address(), client_options_)
           ->OpenAppendStream("people", {.writer = "w", .outage_max = absl::Milliseconds(200)});
  server = nullptr;
  EXPECT_TRUE(stream.Append(Rows(1), Rows(1)).ok());
  const absl::Status status = stream.Finish().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("(rows acknowledged: 0)"));
  // What gRPC says besides depends on what it saw last: a closed or a refused connection.
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("does not answer (rows")));
}

TEST_F(AppendOutageTest, OutageThatBeginsWithTheNextRequestIsReported) {
  auto server = std::make_unique<ScriptedService>();
  server->get_writer = service_.get_writer;
  server->stream_append = service_.stream_append;
  absl::Notification acknowledged, idle, reported;
  const auto notify = [](bool is_so, absl::Notification& notification) {
    if (is_so && !notification.HasBeenNotified()) notification.Notify();
  };
  const auto on_progress = [&](const AppendSummary& summary) {
    notify(summary.acknowledged_requests == 1, acknowledged);
    notify(summary.reconnections == 1 && summary.outage.ok(), idle);
    notify(!summary.outage.ok(), reported);
  };
  AppendStream stream = *Client::Connect(server->address(), client_options_)
                             ->OpenAppendStream("people", {.writer = "w",
                                                           .outage_max = absl::Minutes(5),
                                                           .on_progress = on_progress});
  ASSERT_TRUE(stream.Append(Rows(1), Rows(1)).ok());
  ASSERT_TRUE(acknowledged.WaitForNotificationWithTimeout(absl::Seconds(60)));
  server = nullptr;
  ASSERT_TRUE(idle.WaitForNotificationWithTimeout(absl::Seconds(60)));
  ASSERT_TRUE(stream.Append(Rows(1), Rows(1)).ok());
  EXPECT_TRUE(reported.WaitForNotificationWithTimeout(absl::Seconds(60)));
  EXPECT_TRUE(absl::IsUnavailable(stream.acknowledged().outage));
  stream.Cancel();
}

TEST_F(AppendOutageTest, OutageEndsACallThatIsNotAnswered) {
  service_.stream_append = [&](grpc::ServerContext* context, ServerStream*) {
    absl::MutexLock lock(&mutex_);
    if (++streams_ == 1) return kGone;
    // Reading the stream would not do: it ends when the client has no more to send.
    const auto is_over = [context] { return context->IsCancelled(); };
    while (!mutex_.AwaitWithTimeout(absl::Condition(&is_over), absl::Milliseconds(5))) {
    }
    return grpc::Status::OK;
  };
  // Without the bound, the deadline ends the stream.
  const absl::Status status =
      Run(1, {.deadline = absl::Seconds(60), .outage_max = absl::Milliseconds(500)}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("gone"));
}

// The deadline of the client's calls bounds no outage: here it is far longer.
TEST_F(AppendOutageTest, OutageThatBeginsWithTheNextRequestEndsAtItsMostToo) {
  absl::Notification idle, over;
  service_.get_writer = [&](grpc::ServerContext*, const v1::GetWriterRequest&, v1::Writer*) {
    {
      absl::MutexLock lock(&mutex_);
      if (++questions_ == 1) {
        return DetailedStatus(grpc::StatusCode::NOT_FOUND, "", "WRITER_NOT_FOUND");
      }
    }
    over.WaitForNotification();  // The stream's end, not this answer, ends the call.
    return kGone;
  };
  {
    absl::MutexLock lock(&mutex_);
    connections_ = {{.applied = 1, .end = kGone}};
  }
  AppendStream stream =
      *TryOpen({.outage_max = absl::Seconds(2), .on_progress = [&](const AppendSummary& s) {
                  if (s.reconnections == 1 && !idle.HasBeenNotified()) idle.Notify();
                }});
  ASSERT_TRUE(stream.Append(Rows(2), Rows(2)).ok());
  ASSERT_TRUE(idle.WaitForNotificationWithTimeout(absl::Seconds(60)));
  // The stream now finds that it has nothing to send. If it has not come that far, the failure of
  // the idle connection begins the outage, and the test passes as well.
  absl::Notification never;
  never.WaitForNotificationWithTimeout(absl::Milliseconds(200));
  ASSERT_TRUE(stream.Append(Rows(2), Rows(2)).ok());
  const absl::Status status = stream.Finish().status();
  over.Notify();
  service_.Stop();  // Its handler uses `over`.
  EXPECT_EQ(status.message(),
            "the server cannot be reached or does not answer; before that: gone (rows "
            "acknowledged: 2)");
  // A second one would be reported once the call's deadline had begun an outage.
  EXPECT_EQ(stream.acknowledged().reconnections, 1u);
}

TEST_F(AppendOutageTest, DeadlineEndsAnOutage) {
  {
    absl::MutexLock lock(&mutex_);
    connections_.assign(10'000, {.applied = 0, .end = kGone});
  }
  EXPECT_FALSE(Run(3, {.deadline = absl::Milliseconds(100)}).ok());
}

TEST_F(AppendOutageTest, ConnectionThatBreaksWhileAllIsAcknowledgedBeginsNoOutage) {
  constexpr absl::Duration kOutageMax = absl::Seconds(3);
  {
    absl::MutexLock lock(&mutex_);
    connections_ = {{.applied = 1, .end = kGone}, {.applied = 0, .end = kGone}};
  }
  absl::Notification lost;
  AppendStream stream =
      *TryOpen({.outage_max = kOutageMax, .on_progress = [&](const AppendSummary& summary) {
                  if (summary.reconnections == 1 && !lost.HasBeenNotified()) lost.Notify();
                }});
  ASSERT_TRUE(stream.Append(Rows(2), Rows(2)).ok());
  ASSERT_TRUE(lost.WaitForNotificationWithTimeout(absl::Seconds(60)));
  // Longer than an outage may last, with nothing to send; then comes the first failure that
  // matters.
  absl::Notification never;
  never.WaitForNotificationWithTimeout(kOutageMax);
  ASSERT_TRUE(stream.Append(Rows(2), Rows(2)).ok());
  const auto summary = stream.Finish();
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->acknowledged_rows, 4u);
  EXPECT_EQ(summary->reconnections, 2u);
}

TEST_F(AppendOutageTest, AnOutageIsToldUntilTheNextAcknowledgement) {
  {
    absl::MutexLock lock(&mutex_);
    connections_ = {{.applied = 1, .end = kGone}, {.applied = 0, .end = kGone}};
  }
  std::vector<std::string> outages;
  const auto summary = Run(3, {.on_progress = [&](const AppendSummary& progress) {
                             outages.push_back(std::string(progress.outage.message()));
                           }});
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(outages.front(), "");  // The first request's acknowledgement.
  EXPECT_EQ(outages[1], "gone");
  EXPECT_EQ(outages.back(), "");
  EXPECT_TRUE(summary->outage.ok());
}

TEST_F(AppendOutageTest, CancelEndsAnOutage) {
  {
    absl::MutexLock lock(&mutex_);
    connections_.assign(10'000, {.applied = 0, .end = kGone});
  }
  client_options_.retry.backoff_min = client_options_.retry.backoff_max = absl::Hours(1);
  absl::Notification waits;
  AppendStream stream = *TryOpen({.outage_max = absl::Hours(100),
                                  .on_progress = [&](const AppendSummary&) { waits.Notify(); }});
  ASSERT_TRUE(stream.Append(Rows(2), Rows(2)).ok());
  std::thread canceller([&] {
    waits.WaitForNotification();
    stream.Cancel();
  });
  const absl::Status status = stream.Finish().status();
  canceller.join();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_TRUE(absl::IsCancelled(stream.Append(Rows(1), Rows(1))));
}

TEST_F(AppendOutageTest, CancelIsNoOutage) {
  absl::Notification began;
  service_.stream_append = [&](grpc::ServerContext*, ServerStream* stream) {
    v1::AppendRequest request;
    stream->Read(&request);
    began.Notify();
    Ignore(stream);
    return grpc::Status::OK;
  };
  int reports = 0;
  AppendStream stream = *TryOpen({.on_progress = [&](const AppendSummary&) { ++reports; }});
  ASSERT_TRUE(stream.Append(Rows(2), Rows(2)).ok());
  ASSERT_TRUE(began.WaitForNotificationWithTimeout(absl::Seconds(60)));
  stream.Cancel();
  EXPECT_TRUE(absl::IsCancelled(stream.Finish().status()));
  EXPECT_EQ(reports, 0);
  EXPECT_EQ(stream.acknowledged().reconnections, 0u);
}

}  // namespace
}  // namespace softlookup
