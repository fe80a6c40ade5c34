#ifndef SOFTLOOKUP_CLIENT_CPP_APPEND_PIPELINE_H_
#define SOFTLOOKUP_CLIENT_CPP_APPEND_PIPELINE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "softlookup/append_stream.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup::client_internal {

// What an AppendStream is made of. The methods are AppendStream's, with its rules of threads; the
// destructor cancels what is not finished.
class AppendPipeline {
 public:
  explicit AppendPipeline(const AppendStreamOptions& options) : options_(options) {}
  virtual ~AppendPipeline() = default;
  AppendPipeline(const AppendPipeline&) = delete;
  AppendPipeline& operator=(const AppendPipeline&) = delete;

  virtual absl::Status Append(v1::AppendRequest request) = 0;
  virtual absl::StatusOr<AppendSummary> Finish() = 0;
  virtual AppendSummary acknowledged() const = 0;
  virtual v1::Writer resumed_from() const { return {}; }

  v1::Acknowledge acknowledge() const { return options_.acknowledge; }

 protected:
  const AppendStreamOptions& options() const { return options_; }
  // Call without a lock: the caller's function may ask for acknowledged().
  void Report(const AppendSummary& summary) const {
    if (options_.on_progress) options_.on_progress(summary);
  }

 private:
  const AppendStreamOptions options_;
};

// Whether a request of `bytes` may join `requests` unacknowledged ones of `requests_bytes`.
bool FitsWindow(const AppendStreamOptions& options, std::size_t requests,
                std::int64_t requests_bytes, std::int64_t bytes);

// The failure of a stream, which says how far it got.
absl::Status WithProgress(const absl::Status& failure, const AppendSummary& acknowledged);

// A server said OK to what it had not answered.
absl::Status EndedEarly();

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_APPEND_PIPELINE_H_
