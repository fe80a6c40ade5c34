#ifndef SOFTLOOKUP_CLIENT_CPP_APPEND_PIPELINE_H_
#define SOFTLOOKUP_CLIENT_CPP_APPEND_PIPELINE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "softlookup/append_stream.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup::client_internal {

// The implementation of an AppendStream. AppendStream passes each call on to the method of the same
// name, so the same rules for threads hold. The destructor cancels the stream unless it is
// finished.
class AppendPipeline {
 public:
  explicit AppendPipeline(const AppendStreamOptions& options) : options_(options) {}
  virtual ~AppendPipeline() = default;
  AppendPipeline(const AppendPipeline&) = delete;
  AppendPipeline& operator=(const AppendPipeline&) = delete;

  virtual absl::Status Append(v1::AppendRequest request) = 0;
  virtual absl::StatusOr<AppendSummary> Finish() = 0;
  virtual void Cancel() = 0;
  virtual AppendSummary acknowledged() const = 0;
  virtual v1::Writer resumed_from() const { return {}; }

  v1::Acknowledge acknowledge() const { return options_.acknowledge; }

 protected:
  const AppendStreamOptions& options() const { return options_; }
  // Calls on_progress if it is set. The caller must hold no lock, because on_progress may call
  // acknowledged().
  void Report(const AppendSummary& summary) const {
    if (options_.on_progress) options_.on_progress(summary);
  }

 private:
  const AppendStreamOptions options_;
};

// Whether a request of `bytes` fits the window beside `requests` unacknowledged requests, which
// have `requests_bytes` in all. If no request is unacknowledged, the request always fits.
bool FitsWindow(const AppendStreamOptions& options, std::size_t requests,
                std::int64_t requests_bytes, std::int64_t bytes);

// InvalidArgument if `request` names a store that is not `store`, that of the stream.
absl::Status CheckStore(const v1::AppendRequest& request, const std::string& store);

// Returns `failure` with the number of acknowledged rows added to its message.
absl::Status WithProgress(const absl::Status& failure, const AppendSummary& acknowledged);

// Returns an Internal error: the server ended the stream with OK before it answered every request.
absl::Status EndedEarly();

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_APPEND_PIPELINE_H_
