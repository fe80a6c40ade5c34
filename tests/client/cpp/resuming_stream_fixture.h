#ifndef SOFTLOOKUP_TESTS_CLIENT_CPP_RESUMING_STREAM_FIXTURE_H_
#define SOFTLOOKUP_TESTS_CLIENT_CPP_RESUMING_STREAM_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "softlookup/append_stream.h"
#include "softlookup/client.h"
#include "tests/client/cpp/append_stream_fixture.h"
#include "tests/testing/patient_options.h"

namespace softlookup::testing {

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
    absl::StatusOr<AppendStream> stream = TryOpen(options);
    if (!stream.ok()) return stream.status();
    for (int i = 0; i < requests; ++i) stream->Append(Rows(2), Rows(2)).IgnoreError();
    return stream->Finish();
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

inline const grpc::Status kGone(grpc::StatusCode::UNAVAILABLE, "gone");

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CLIENT_CPP_RESUMING_STREAM_FIXTURE_H_
