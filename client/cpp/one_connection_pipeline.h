#ifndef SOFTLOOKUP_CLIENT_CPP_ONE_CONNECTION_PIPELINE_H_
#define SOFTLOOKUP_CLIENT_CPP_ONE_CONNECTION_PIPELINE_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/append_pipeline.h"
#include "client/cpp/bearer_token.h"
#include "client/cpp/servers.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup::client_internal {

// An append stream without a writer. It consists of one StreamAppend call and ends with it.
//
// The caller's thread writes requests and, once reading has ended, takes the final status. A reader
// thread reads the acknowledgements and reports progress. So no two threads read from the call, or
// write to it, at the same time.
class OneConnectionPipeline final : public AppendPipeline {
 public:
  OneConnectionPipeline(std::shared_ptr<Servers> servers, const BearerToken& token,
                        std::string store, const AppendStreamOptions& options);
  ~OneConnectionPipeline() override;

  absl::Status Append(v1::AppendRequest request) override;
  absl::StatusOr<AppendSummary> Finish() override;
  void Cancel() override { context_.TryCancel(); }
  AppendSummary acknowledged() const override;

 private:
  void ReadAcknowledgements();
  // Counts the oldest unacknowledged request as acknowledged. False if there is none: the server
  // then sent more answers than it got requests.
  bool Acknowledge(const v1::AppendResponse& response);
  // Whether Append() can go on without waiting. True if the window has room for a request of
  // `bytes`. Also true if reading has ended, because then no acknowledgement will make room.
  bool MayProceed(std::int64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for the end of the call and sets result_. An end before WritesDone(), or before all
  // requests are answered, is a failure, even if the call's status is OK. Call this only if the
  // call is over or cancelled, or after WritesDone(). Otherwise End() may never return.
  void End();

  const std::shared_ptr<Servers> servers_;
  const Server& server_;  // The one of servers_ that takes the call.
  grpc::ClientContext context_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::AppendRequest, v1::AppendResponse>> stream_;

  // Empty: the stream was opened without a store, and its requests name it.
  const std::string store_;

  // The three members below are used by the caller's thread only.
  bool store_sent_ = false;             // A request has named the store.
  bool writes_done_ = false;            // The end of the requests has been sent.
  std::optional<absl::Status> result_;  // Set once the stream is over.

  mutable absl::Mutex mutex_;
  std::deque<std::int64_t> unacknowledged_ ABSL_GUARDED_BY(mutex_);  // Bytes of each, oldest first.
  std::int64_t unacknowledged_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  AppendSummary acknowledged_ ABSL_GUARDED_BY(mutex_);
  bool reading_ended_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread reader_;  // Declared last: the thread uses all members above.
};

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_ONE_CONNECTION_PIPELINE_H_
