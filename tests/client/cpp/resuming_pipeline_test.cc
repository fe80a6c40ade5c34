// Append streams with a writer, which outlive their connections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "softlookup/append_stream.h"
#include "softlookup/client.h"
#include "tests/client/cpp/resuming_stream_fixture.h"

namespace softlookup {
namespace {

using ::softlookup::testing::DetailedStatus;
using ::softlookup::testing::kGone;
using ::softlookup::testing::ResumingAppendStreamTest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
  AppendStream stream = *TryOpen({.deadline = absl::Seconds(3), .unacknowledged_requests_max = 2});
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
