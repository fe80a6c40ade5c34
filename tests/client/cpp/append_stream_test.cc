#include "softlookup/append_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "softlookup/client.h"
#include "tests/client/cpp/append_stream_fixture.h"
#include "tests/testing/closed_port.h"
#include "tests/testing/patient_options.h"

namespace softlookup {
namespace {

using ::softlookup::testing::AppendStreamTest;
using ::softlookup::testing::ClosedPort;
using ::softlookup::testing::DetailedStatus;
using ::softlookup::testing::PatientOptions;
using ::softlookup::testing::ScriptedService;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
TEST_F(AppendStreamTest, FinishCountsWhatWasAcknowledged) {
  service_.stream_append = [](grpc::ServerContext*, ServerStream* stream) {
    Acknowledge(stream, 1000);
    return grpc::Status::OK;
  };
  AppendStream stream = Open();
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(stream.Append(Rows(3), Rows(3)).ok());
  const auto summary = stream.Finish();
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->acknowledged_requests, 200u);
  EXPECT_EQ(summary->acknowledged_rows, 600u);
  EXPECT_EQ(summary->row_count, 600u);
  EXPECT_EQ(summary->revision, 201u);
  EXPECT_EQ(stream.Finish()->acknowledged_rows, 600u);
  EXPECT_TRUE(absl::IsFailedPrecondition(stream.Append(Rows(1), Rows(1))));
}

// Answers each request of a stream, and adds the store that it names to `stores`.
auto NoteStores(std::vector<std::string>& stores) {
  return [&stores](grpc::ServerContext*, auto* stream) {
    v1::AppendRequest request;
    while (stream->Read(&request)) {
      stores.push_back(request.store());
      stream->Write({});
    }
    return grpc::Status::OK;
  };
}

TEST_F(AppendStreamTest, NamesTheStoreOnceAndTheAcknowledgementAlways) {
  std::vector<std::string> stores;
  std::vector<int> acknowledges;
  service_.stream_append = [&](grpc::ServerContext*, ServerStream* stream) {
    v1::AppendRequest request;
    while (stream->Read(&request)) {
      stores.push_back(request.store());
      acknowledges.push_back(request.acknowledge());
      stream->Write({});
    }
    return grpc::Status::OK;
  };
  AppendStream stream = Open({.acknowledge = v1::ACKNOWLEDGE_APPLIED});
  ASSERT_TRUE(stream.Append(Rows(1), Rows(1)).ok());
  ASSERT_TRUE(stream.Append(Rows(1), Rows(1)).ok());
  ASSERT_TRUE(stream.Finish().ok());
  EXPECT_THAT(stores, ElementsAre("people", ""));
  EXPECT_THAT(acknowledges, ElementsAre(v1::ACKNOWLEDGE_APPLIED, v1::ACKNOWLEDGE_APPLIED));
}

TEST_F(AppendStreamTest, ARequestThatNamesAnotherStoreIsRefusedAndTheStreamGoesOn) {
  std::vector<std::string> stores;
  service_.stream_append = NoteStores(stores);
  AppendStream stream = Open();
  v1::AppendRequest request;
  request.set_store("pets");
  const absl::Status refused = stream.Append(request);
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("\"pets\""));
  request.set_store("people");
  ASSERT_TRUE(stream.Append(request).ok());
  ASSERT_TRUE(stream.Append(request).ok());
  ASSERT_TRUE(stream.Finish().ok());
  EXPECT_THAT(stores, ElementsAre("people", ""));
}

TEST_F(AppendStreamTest, AStreamWithoutAStoreLeavesItToItsRequests) {
  std::vector<std::string> stores;
  service_.stream_append = NoteStores(stores);
  AppendStream stream =
      *Client::Connect(service_.address(), PatientOptions())->OpenAppendStream("");
  v1::AppendRequest request;
  request.set_store("pets");
  ASSERT_TRUE(stream.Append(request).ok());
  ASSERT_TRUE(stream.Finish().ok());
  EXPECT_THAT(stores, ElementsAre("pets"));
}

TEST_F(AppendStreamTest, BlocksWhileTooManyRequestsAreUnacknowledged) {
  service_.stream_append = [](grpc::ServerContext*, ServerStream* stream) {
    Ignore(stream);
    return grpc::Status::OK;
  };
  AppendStream stream = Open({.deadline = absl::Seconds(3), .unacknowledged_requests_max = 2});
  EXPECT_TRUE(stream.Append(Rows(1), Rows(1)).ok());
  EXPECT_TRUE(stream.Append(Rows(1), Rows(1)).ok());
  // Returns only because the deadline ends the stream: without a window this would be sent.
  EXPECT_TRUE(absl::IsDeadlineExceeded(stream.Append(Rows(1), Rows(1))));
}

TEST_F(AppendStreamTest, CancelEndsAWaitForTheWindow) {
  absl::Notification received;
  service_.stream_append = [&](grpc::ServerContext*, ServerStream* stream) {
    v1::AppendRequest request;
    if (stream->Read(&request)) received.Notify();
    Ignore(stream);
    return grpc::Status::OK;
  };
  AppendStream stream = Open({.unacknowledged_requests_max = 1});
  EXPECT_TRUE(stream.Append(Rows(1), Rows(1)).ok());
  std::thread canceller([&] {
    received.WaitForNotification();
    stream.Cancel();
  });
  EXPECT_TRUE(absl::IsCancelled(stream.Append(Rows(1), Rows(1))));
  canceller.join();
  EXPECT_TRUE(absl::IsCancelled(stream.Finish().status()));
}

TEST_F(AppendStreamTest, BlocksWhileTooManyBytesAreUnacknowledged) {
  service_.stream_append = [](grpc::ServerContext*, ServerStream* stream) {
    Ignore(stream);
    return grpc::Status::OK;
  };
  AppendStream stream = Open({.deadline = absl::Seconds(3), .unacknowledged_bytes_max = 1000});
  EXPECT_TRUE(stream.Append(Rows(100), Rows(1)).ok());
  EXPECT_TRUE(stream.Append(Rows(50), Rows(1)).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(stream.Append(Rows(100), Rows(1))));
}

TEST_F(AppendStreamTest, RequestsLargerThanTheWindowTravelOneByOne) {
  service_.stream_append = [](grpc::ServerContext*, ServerStream* stream) {
    Acknowledge(stream, 1000);
    return grpc::Status::OK;
  };
  AppendStream stream = Open({.deadline = absl::Seconds(60), .unacknowledged_bytes_max = 1});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(stream.Append(Rows(100), Rows(100)).ok());
  EXPECT_EQ(stream.Finish()->acknowledged_rows, 500u);
}

TEST_F(AppendStreamTest, FirstFailureIsStickyAndSaysHowManyRowsWereAcknowledged) {
  service_.stream_append = [](grpc::ServerContext*, ServerStream* stream) {
    Acknowledge(stream, 2);
    return DetailedStatus(grpc::StatusCode::INVALID_ARGUMENT, "keys: row 1 is not finite",
                          "NOT_FINITE", {{"row", "1"}});
  };
  AppendStream stream = Open();
  absl::Status status;
  while (status.ok()) status = stream.Append(Rows(10), Rows(10));
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "keys: row 1 is not finite (rows acknowledged: 20)");
  EXPECT_EQ(ErrorReason(status), "NOT_FINITE");
  EXPECT_EQ(stream.acknowledged().acknowledged_rows, 20u);
  EXPECT_EQ(stream.Append(Rows(1), Rows(1)), status);
  EXPECT_EQ(stream.Finish().status(), status);
}

TEST_F(AppendStreamTest, FailureOfTheLastRequestShowsInFinish) {
  service_.stream_append = [](grpc::ServerContext*, ServerStream* stream) {
    Ignore(stream);
    return DetailedStatus(grpc::StatusCode::NOT_FOUND, "no store", "STORE_NOT_FOUND");
  };
  AppendStream stream = Open();
  EXPECT_TRUE(stream.Append(Rows(1), Rows(1)).ok());
  EXPECT_EQ(ErrorReason(stream.Finish().status()), "STORE_NOT_FOUND");
}

TEST_F(AppendStreamTest, ServerThatEndsBeforeItAnsweredEverythingIsAnError) {
  service_.stream_append = [](grpc::ServerContext*, ServerStream* stream) {
    Ignore(stream);
    return grpc::Status::OK;
  };
  AppendStream stream = Open();
  EXPECT_TRUE(stream.Append(Rows(1), Rows(1)).ok());
  EXPECT_TRUE(absl::IsInternal(stream.Finish().status()));
}

TEST_F(AppendStreamTest, AcknowledgementOfNothingIsAnError) {
  service_.stream_append = [](grpc::ServerContext*, ServerStream* stream) {
    stream->Write({});
    Ignore(stream);
    return grpc::Status::OK;
  };
  AppendStream stream = Open();
  EXPECT_FALSE(stream.Finish().ok());
}

TEST_F(AppendStreamTest, StreamWithoutRequestsFinishesWell) {
  service_.stream_append = [](grpc::ServerContext*, ServerStream* stream) {
    Ignore(stream);
    return grpc::Status::OK;
  };
  const auto summary = Open().Finish();
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->acknowledged_requests, 0u);
}

TEST_F(AppendStreamTest, MatrixOfTheWrongSizeIsRefusedAndTheStreamGoesOn) {
  service_.stream_append = [](grpc::ServerContext*, ServerStream* stream) {
    Acknowledge(stream, 1000);
    return grpc::Status::OK;
  };
  AppendStream stream = Open();
  EXPECT_TRUE(absl::IsInvalidArgument(stream.Append(FloatMatrixView({}, 1, 1), Rows(1))));
  EXPECT_TRUE(stream.Append(Rows(1), Rows(1)).ok());
  EXPECT_EQ(stream.Finish()->acknowledged_rows, 1u);
}

TEST_F(AppendStreamTest, DestroyingAnUnfinishedStreamCancelsIt) {
  absl::Notification cancelled;
  service_.stream_append = [&](grpc::ServerContext* context, ServerStream* stream) {
    Ignore(stream);
    if (context->IsCancelled()) cancelled.Notify();
    return grpc::Status::OK;
  };
  {
    AppendStream stream = Open();
    EXPECT_TRUE(stream.Append(Rows(1), Rows(1)).ok());
  }
  EXPECT_TRUE(cancelled.WaitForNotificationWithTimeout(absl::Seconds(60)));
}

TEST_F(AppendStreamTest, UnreachableServerShowsAtTheLatestInFinish) {
  const ClosedPort port;
  AppendStream stream =
      *Client::Connect(port.address(), PatientOptions())->OpenAppendStream("people");
  stream.Append(Rows(1), Rows(1)).IgnoreError();
  const absl::Status status = stream.Finish().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("(rows acknowledged: 0)"));
}

TEST_F(AppendStreamTest, OptionsOutOfRangeAreRefused) {
  Client client = *Client::Connect(service_.address(), PatientOptions());
  for (const auto& [options, field] : std::vector<std::pair<AppendStreamOptions, std::string>>{
           {{.deadline = absl::ZeroDuration()}, "deadline"},
           {{.unacknowledged_requests_max = 0}, "unacknowledged_requests_max"},
           {{.unacknowledged_bytes_max = 0}, "unacknowledged_bytes_max"},
           {{.outage_max = -absl::Seconds(1)}, "outage_max"}}) {
    const absl::Status status = client.OpenAppendStream("people", options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("AppendStreamOptions::" + field + " must be "));
  }
}

TEST_F(AppendStreamTest, ProgressIsReportedWithEveryAcknowledgement) {
  service_.stream_append = [](grpc::ServerContext*, ServerStream* stream) {
    Acknowledge(stream, 1000);
    return grpc::Status::OK;
  };
  std::vector<std::uint64_t> rows;
  AppendStream stream = Open({.on_progress = [&rows](const AppendSummary& summary) {
    rows.push_back(summary.acknowledged_rows);
  }});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(stream.Append(Rows(2), Rows(2)).ok());
  ASSERT_TRUE(stream.Finish().ok());
  EXPECT_THAT(rows, ElementsAre(2, 4, 6));
}

}  // namespace
}  // namespace softlookup
