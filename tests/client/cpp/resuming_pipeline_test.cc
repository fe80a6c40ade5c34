// Append streams with a writer, which outlive their connections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "softlookup/append_stream.h"
#include "softlookup/client.h"
#include "tests/client/cpp/append_stream_fixture.h"
#include "tests/testing/patient_options.h"

namespace softlookup {
namespace {

using ::softlookup::testing::AppendStreamTest;
using ::softlookup::testing::DetailedStatus;
using ::softlookup::testing::PatientOptions;
using ::softlookup::testing::ScriptedService;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A stream with a writer, and a server that knows one writer and breaks as the test says.
class ResumingAppendStreamTest : public AppendStreamTest {
 protected:
  ResumingAppendStreamTest() {
    service_.get_writer = [this](grpc::ServerContext*, const v1::GetWriterRequest& request,
                                 v1::Writer* writer) {
      EXPECT_EQ(request.store(), "people");
      EXPECT_EQ(request.writer(), "w");
      absl::MutexLock lock(&mutex_);
      ++questions_;
      if (last_sequence_ == 0) {
        return DetailedStatus(grpc::StatusCode::NOT_FOUND, "no writer", "WRITER_NOT_FOUND");
      }
      writer->set_writer("w");
      writer->set_last_sequence(last_sequence_);
      writer->set_last_position(last_sequence_ - 1);
      return grpc::Status::OK;
    };
    service_.stream_append = [this](grpc::ServerContext* context, ServerStream* stream) {
      return Serve(context, stream);
    };
    client_options_.retry.backoff_min = absl::Milliseconds(1);
    client_options_.retry.backoff_max = absl::Milliseconds(5);
    client_options_.retry.attempts_max = 1;  // Of the calls that have this limit.
  }

  ~ResumingAppendStreamTest() override { service_.Stop(); }  // Its handlers use what goes now.

  // How one connection goes.
  struct Connection {
    int applied = 1000;       // Requests, then it breaks.
    int acknowledged = 1000;  // Of them.
    grpc::Status end = grpc::Status::OK;
  };

  grpc::Status Serve(grpc::ServerContext* context, ServerStream* stream) {
    Connection connection;
    {
      absl::MutexLock lock(&mutex_);
      ++streams_;
      if (!connections_.empty()) {
        connection = connections_.front();
        connections_.pop_front();
      }
    }
    v1::AppendRequest request;
    bool first = true;
    while (connection.applied-- > 0 && stream->Read(&request)) {
      EXPECT_TRUE(!std::exchange(first, false) || request.store() == "people");
      EXPECT_EQ(request.writer(), "w");
      const v1::AppendResponse response = Apply(request);
      if (connection.acknowledged-- > 0) stream->Write(response);
    }
    if (pushback_ms_ != "") context->AddTrailingMetadata("grpc-retry-pushback-ms", pushback_ms_);
    return connection.end;
  }

  v1::AppendResponse Apply(const v1::AppendRequest& request) {
    absl::MutexLock lock(&mutex_);
    v1::AppendResponse response;
    response.set_sequence(request.sequence());
    response.set_duplicate(request.sequence() <= last_sequence_);
    if (!response.duplicate()) {
      last_sequence_ = request.sequence();
      response.set_appended_count(request.keys().rows());
      applied_.push_back(request.sequence());
    }
    response.set_row_count(last_sequence_);
    response.set_revision(1 + applied_.size());
    return response;
  }

  absl::StatusOr<AppendStream> TryOpen(AppendStreamOptions options = {}) {
    options.writer = "w";
    return Client::Connect(service_.address(), client_options_)
        ->OpenAppendStream("people", options);
  }

  // Appends requests of two rows each, and finishes.
  absl::StatusOr<AppendSummary> Run(int requests, const AppendStreamOptions& options = {}) {
    AppendStream stream = *TryOpen(options);
    for (int i = 0; i < requests; ++i) stream.Append(Rows(2), Rows(2)).IgnoreError();
    return stream.Finish();
  }

  ClientOptions client_options_ = PatientOptions();
  std::string pushback_ms_;
  absl::Mutex mutex_;
  std::deque<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::uint64_t> applied_ ABSL_GUARDED_BY(mutex_);  // Sequences, in order.
  std::uint64_t last_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  int questions_ ABSL_GUARDED_BY(mutex_) = 0;
  int streams_ ABSL_GUARDED_BY(mutex_) = 0;
};

const grpc::Status kGone(grpc::StatusCode::UNAVAILABLE, "gone");

TEST_F(ResumingAppendStreamTest, SequencesCountTheWritersRowsFromWhereItWasLeft) {
  {
    absl::MutexLock lock(&mutex_);
    last_sequence_ = 7;
  }
  AppendStream stream = *TryOpen();
  EXPECT_EQ(stream.resumed_from().last_sequence(), 7u);
  EXPECT_EQ(stream.resumed_from().last_position(), 6u);
  ASSERT_TRUE(stream.Append(Rows(2), Rows(2)).ok());
  ASSERT_TRUE(stream.Append(Rows(3), Rows(3)).ok());
  const auto summary = stream.Finish();
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->acknowledged_rows, 5u);
  EXPECT_EQ(summary->reconnections, 0u);
  EXPECT_TRUE(absl::IsFailedPrecondition(stream.Append(Rows(1), Rows(1))));
  absl::MutexLock lock(&mutex_);
  EXPECT_THAT(applied_, ElementsAre(9, 12));
}

TEST_F(ResumingAppendStreamTest, WhatWasNotAppliedIsSentAgainAndWhatWasIsNot) {
  {
    absl::MutexLock lock(&mutex_);
    connections_ = {{.applied = 3, .acknowledged = 1, .end = kGone},
                    {.applied = 0, .end = kGone},
                    {.applied = 1, .acknowledged = 0, .end = kGone}};
  }
  const auto summary = Run(6);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->acknowledged_requests, 6u);
  EXPECT_EQ(summary->acknowledged_rows, 12u);
  EXPECT_EQ(summary->row_count, 12u);
  EXPECT_EQ(summary->revision, 7u);
  EXPECT_EQ(summary->reconnections, 3u);
  absl::MutexLock lock(&mutex_);
  EXPECT_THAT(applied_, ElementsAre(2, 4, 6, 8, 10, 12));
  EXPECT_EQ(questions_, 4);
}

TEST_F(ResumingAppendStreamTest, LostAnswerToTheLastRequestLeavesTheSummaryRight) {
  {
    absl::MutexLock lock(&mutex_);
    connections_ = {{.applied = 2, .acknowledged = 0, .end = kGone}};
  }
  const auto summary = Run(2);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->acknowledged_requests, 2u);
  EXPECT_EQ(summary->acknowledged_rows, 4u);
  EXPECT_EQ(summary->row_count, 4u);
  EXPECT_EQ(summary->revision, 3u);
}

TEST_F(ResumingAppendStreamTest, ServerThatAsksToComeBackIsObeyed) {
  {
    absl::MutexLock lock(&mutex_);
    connections_ = {{.applied = 1,
                     .end = DetailedStatus(grpc::StatusCode::RESOURCE_EXHAUSTED, "full",
                                           "QUEUE_FULL", {}, absl::Milliseconds(30))},
                    {.applied = 1,
                     .end = DetailedStatus(grpc::StatusCode::UNAVAILABLE, "stops", "SHUTTING_DOWN",
                                           {}, absl::Milliseconds(40))}};
  }
  const absl::Time start = absl::Now();
  const auto summary = Run(4);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->acknowledged_rows, 8u);
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(70));
}

TEST_F(ResumingAppendStreamTest, FailureThatIsAboutTheRequestIsSticky) {
  for (const grpc::Status& end :
       {DetailedStatus(grpc::StatusCode::INVALID_ARGUMENT, "bad", "NON_FINITE_VALUE"),
        DetailedStatus(grpc::StatusCode::ALREADY_EXISTS, "bad", "ROW_EXISTS"),
        DetailedStatus(grpc::StatusCode::NOT_FOUND, "bad", "STORE_NOT_FOUND"),
        DetailedStatus(grpc::StatusCode::FAILED_PRECONDITION, "bad", "NO_PROJECTION"),
        DetailedStatus(grpc::StatusCode::DATA_LOSS, "bad", "DATA_LOSS"),
        DetailedStatus(grpc::StatusCode::RESOURCE_EXHAUSTED, "bad", "MESSAGE_TOO_LARGE")}) {
    {
      absl::MutexLock lock(&mutex_);
      connections_ = {{.applied = 1, .end = end}};
      streams_ = 0;
      last_sequence_ = 0;
    }
    AppendStream stream = *TryOpen();
    absl::Status status;
    while (status.ok()) status = stream.Append(Rows(2), Rows(2));
    EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(end.error_code()));
    EXPECT_EQ(status.message(), "bad (rows acknowledged: 2)");
    EXPECT_NE(ErrorReason(status), "");
    EXPECT_EQ(stream.Finish().status(), status);
    absl::MutexLock lock(&mutex_);
    EXPECT_EQ(streams_, 1);
  }
}

TEST_F(ResumingAppendStreamTest, ServerThatForbidsItIsNotAskedAgain) {
  pushback_ms_ = "-1";
  {
    absl::MutexLock lock(&mutex_);
    connections_ = {{.applied = 0, .end = kGone}};
  }
  EXPECT_TRUE(absl::IsUnavailable(Run(2).status()));
}

TEST_F(ResumingAppendStreamTest, OutageEndsTheStreamAtItsMost) {
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
                    "the server cannot be reached or does not answer (rows acknowledged: 2)"));
  absl::MutexLock lock(&mutex_);
  EXPECT_GT(streams_, 4);  // RetryOptions::attempts_max does not count.
}

TEST_F(ResumingAppendStreamTest, ServerThatDoesNotComeBackEndsTheStream) {
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
}

TEST_F(ResumingAppendStreamTest, DeadlineEndsAnOutage) {
  {
    absl::MutexLock lock(&mutex_);
    connections_.assign(10'000, {.applied = 0, .end = kGone});
  }
  EXPECT_FALSE(Run(3, {.deadline = absl::Milliseconds(100)}).ok());
}

TEST_F(ResumingAppendStreamTest, ConnectionThatBreaksWhileAllIsAcknowledgedBeginsNoOutage) {
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

TEST_F(ResumingAppendStreamTest, AnOutageIsToldUntilTheNextAcknowledgement) {
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

TEST_F(ResumingAppendStreamTest, CancelEndsAnOutage) {
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

TEST_F(ResumingAppendStreamTest, CancelIsNoOutage) {
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

TEST_F(ResumingAppendStreamTest, CancelAfterTheEndChangesNothing) {
  AppendStream stream = *TryOpen();
  ASSERT_TRUE(stream.Append(Rows(2), Rows(2)).ok());
  ASSERT_TRUE(stream.Finish().ok());
  stream.Cancel();
  EXPECT_EQ(stream.Finish()->acknowledged_rows, 2u);
}

TEST_F(ResumingAppendStreamTest, ServerThatForgotWhatItHadAcknowledgedIsFoundOut) {
  {
    absl::MutexLock lock(&mutex_);
    connections_ = {{.applied = 1, .end = kGone}};
  }
  const auto forget = [this](const AppendSummary& summary) {
    absl::MutexLock lock(&mutex_);
    last_sequence_ = 0;
  };
  const absl::Status status = Run(2, {.on_progress = forget}).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
}

TEST_F(ResumingAppendStreamTest, AnswerToAnotherRequestIsAnError) {
  service_.stream_append = [](grpc::ServerContext*, ServerStream* stream) {
    v1::AppendRequest request;
    stream->Read(&request);
    v1::AppendResponse response;
    response.set_sequence(request.sequence() + 1);
    stream->Write(response);
    Ignore(stream);
    return grpc::Status::OK;
  };
  EXPECT_TRUE(absl::IsInternal(Run(1).status()));
}

TEST_F(ResumingAppendStreamTest, AnotherSenderOfTheSameWriterEndsTheStream) {
  AppendStream stream = *TryOpen({.unacknowledged_requests_max = 1});
  ASSERT_TRUE(stream.Append(Rows(2), Rows(2)).ok());
  {
    // The window has one request, so the second one is not sent before the first is acknowledged.
    absl::MutexLock lock(&mutex_);
    const auto is_applied = [this]()
                                ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !applied_.empty(); };
    mutex_.Await(absl::Condition(&is_applied));
    last_sequence_ = 4;
  }
  stream.Append(Rows(2), Rows(2)).IgnoreError();
  const absl::Status status = stream.Finish().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("another sender uses this writer's name"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("(rows acknowledged: 2)"));
  EXPECT_EQ(stream.Append(Rows(1), Rows(1)), status);
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(streams_, 1);
}

TEST_F(ResumingAppendStreamTest, WriterSequenceAndStoreAreTheStreamsOwn) {
  AppendStream stream = *TryOpen();
  v1::AppendRequest request;
  request.mutable_keys()->set_rows(1);
  request.set_sequence(1);
  EXPECT_TRUE(absl::IsInvalidArgument(stream.Append(request)));
  request.clear_sequence();
  request.set_writer("w");
  EXPECT_TRUE(absl::IsInvalidArgument(stream.Append(request)));
  request.clear_writer();
  request.set_store("pets");
  EXPECT_TRUE(absl::IsInvalidArgument(stream.Append(request)));
  request.set_store("people");
  EXPECT_TRUE(stream.Append(request).ok());
  EXPECT_EQ(stream.Finish()->acknowledged_rows, 1u);
}

TEST_F(ResumingAppendStreamTest, OpeningFailsWhereTheWriterCannotBeFound) {
  service_.get_writer = [](grpc::ServerContext*, const v1::GetWriterRequest&, v1::Writer*) {
    return DetailedStatus(grpc::StatusCode::NOT_FOUND, "no store", "STORE_NOT_FOUND");
  };
  EXPECT_EQ(ErrorReason(TryOpen().status()), "STORE_NOT_FOUND");
}

TEST_F(ResumingAppendStreamTest, AppendBlocksWhileTheWindowIsFull) {
  service_.stream_append = [](grpc::ServerContext*, ServerStream* stream) {
    Ignore(stream);
    return grpc::Status::OK;
  };
  AppendStream stream =
      *TryOpen({.deadline = absl::Milliseconds(200), .unacknowledged_requests_max = 2});
  EXPECT_TRUE(stream.Append(Rows(1), Rows(1)).ok());
  EXPECT_TRUE(stream.Append(Rows(1), Rows(1)).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(stream.Append(Rows(1), Rows(1))));
}

TEST_F(ResumingAppendStreamTest, DestroyingAStreamEndsItsWaitForTheServer) {
  client_options_.retry.backoff_min = client_options_.retry.backoff_max = absl::Hours(1);
  {
    absl::MutexLock lock(&mutex_);
    connections_ = {{.applied = 0, .end = kGone}};
  }
  absl::Notification lost;
  {
    AppendStream stream = *TryOpen({.outage_max = absl::Hours(9),
                                    .on_progress = [&](const AppendSummary&) { lost.Notify(); }});
    ASSERT_TRUE(stream.Append(Rows(1), Rows(1)).ok());
    ASSERT_TRUE(lost.WaitForNotificationWithTimeout(absl::Seconds(60)));
  }
}

TEST_F(ResumingAppendStreamTest, DestroyingAStreamCancelsItsCall) {
  absl::Notification began, cancelled;
  service_.stream_append = [&](grpc::ServerContext* context, ServerStream* stream) {
    v1::AppendRequest request;
    stream->Read(&request);
    began.Notify();
    Ignore(stream);
    if (context->IsCancelled()) cancelled.Notify();
    return grpc::Status::OK;
  };
  {
    AppendStream stream = *TryOpen();
    ASSERT_TRUE(stream.Append(Rows(1), Rows(1)).ok());
    ASSERT_TRUE(began.WaitForNotificationWithTimeout(absl::Seconds(60)));
  }
  EXPECT_TRUE(cancelled.WaitForNotificationWithTimeout(absl::Seconds(60)));
}

}  // namespace
}  // namespace softlookup
