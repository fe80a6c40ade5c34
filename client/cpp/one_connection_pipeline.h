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
#include "softlookup/v1/soft_lookup.grpc.pb.h"

namespace softlookup::client_internal {

// Lives and dies with one call of StreamAppend.
//
// The caller's thread writes requests and, once reading has ended, takes the final status. A reader
// thread takes acknowledgements and nothing else, so no two threads ever use the stream for the
// same purpose.
class OneConnectionPipeline final : public AppendPipeline {
 public:
  OneConnectionPipeline(std::shared_ptr<v1::SoftLookup::Stub> stub, const BearerToken& token,
                        std::string store, const AppendStreamOptions& options);
  ~OneConnectionPipeline() override;

  absl::Status Append(v1::AppendRequest request) override;
  absl::StatusOr<AppendSummary> Finish() override;
  AppendSummary acknowledged() const override;

 private:
  void ReadAcknowledgements();
  // Counts an acknowledgement; false if nothing was there to acknowledge.
  bool Acknowledge(const v1::AppendResponse& response);
  // Room for a request of `bytes` more, or no hope of any.
  bool MayProceed(std::int64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the final status of a stream that has ended or been told to; sets result_.
  void End();

  const std::shared_ptr<v1::SoftLookup::Stub> stub_;
  grpc::ClientContext context_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::AppendRequest, v1::AppendResponse>> stream_;

  // The caller's thread only.
  std::string store_;                   // Empty once it is sent.
  bool writes_done_ = false;            // The end of the requests has been sent.
  std::optional<absl::Status> result_;  // The stream is over.

  mutable absl::Mutex mutex_;
  std::deque<std::int64_t> unacknowledged_ ABSL_GUARDED_BY(mutex_);  // Bytes of each, in order.
  std::int64_t unacknowledged_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  AppendSummary acknowledged_ ABSL_GUARDED_BY(mutex_);
  bool reading_ended_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread reader_;  // Last: it uses all of the above.
};

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_ONE_CONNECTION_PIPELINE_H_
