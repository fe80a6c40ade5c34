#ifndef SOFTLOOKUP_CLIENT_LIB_APPEND_STREAM_IMPL_H_
#define SOFTLOOKUP_CLIENT_LIB_APPEND_STREAM_IMPL_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "softlookup/append_stream.h"
#include "softlookup/v1/soft_lookup.grpc.pb.h"

namespace softlookup {

// The caller's thread writes requests and, once reading has ended, takes the final status. A reader
// thread takes acknowledgements and nothing else, so no two threads ever use the stream for the
// same purpose.
class AppendStream::Impl {
 public:
  Impl(std::shared_ptr<v1::SoftLookup::Stub> stub, std::string store,
       const AppendStreamOptions& options);
  ~Impl();

  absl::Status Append(v1::AppendRequest request);
  absl::StatusOr<AppendSummary> Finish();
  AppendSummary acknowledged() const;
  v1::Acknowledge acknowledge() const { return options_.acknowledge; }

 private:
  void ReadAcknowledgements();
  // Room for a request of `bytes` more, or no hope of any.
  bool MayProceed(std::int64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the final status of a stream that has ended or been told to; sets result_.
  void End();

  const AppendStreamOptions options_;
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

}  // namespace softlookup

#endif  // SOFTLOOKUP_CLIENT_LIB_APPEND_STREAM_IMPL_H_
