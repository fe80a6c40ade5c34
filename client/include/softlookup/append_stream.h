#ifndef SOFTLOOKUP_APPEND_STREAM_H_
#define SOFTLOOKUP_APPEND_STREAM_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "softlookup/float_matrix.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup {

struct AppendStreamOptions {
  // Changes behaviour.
  v1::Acknowledge acknowledge = v1::ACKNOWLEDGE_DURABLE;  // For rows given as matrices.
  absl::Duration deadline = absl::InfiniteDuration();     // Of the whole stream, from its opening.

  // Changes speed. A request that alone is larger than the window travels alone.
  int unacknowledged_requests_max = 64;                            // At least 1.
  std::int64_t unacknowledged_bytes_max = std::int64_t{32} << 20;  // At least 1.
};

// What a stream has written so far, counted from acknowledgements.
struct AppendSummary {
  std::uint64_t acknowledged_requests = 0;
  std::uint64_t acknowledged_rows = 0;
  std::uint64_t row_count = 0;  // The store's, after the last acknowledged request; 0 before one.
  std::uint64_t revision = 0;   // Likewise: pass it as `min_revision` to read your own write.
};

// A pipeline of appends to one store: requests follow each other without waiting for the answers,
// inside a bounded window. Opened by Client::OpenAppendStream, whose Client it may outlive.
//
// Append() and Finish() belong to one thread at a time; acknowledged() may be called by any.
//
// The first failure is sticky: every later call returns it. Its message says how many rows had been
// acknowledged; of the rows after those, a prefix of whole requests may have been written. Nothing
// is retried, because a request that was cut off may have been applied: give requests a `writer`
// and a `sequence` and send them again on a new stream, and each is applied exactly once.
class AppendStream {
 public:
  AppendStream(AppendStream&&) noexcept;
  AppendStream& operator=(AppendStream&&) noexcept;
  // Cancels the stream unless it is finished: unacknowledged requests may or may not be written.
  ~AppendStream();

  // Sends the rows as one atomic request; `keys` [N x key_dim] and `values` [N x value_dim] may be
  // reused at once. Blocks while the window is full. OK means sent, not written. InvalidArgument,
  // which is not sticky, if a view's size is not rows * cols.
  absl::Status Append(FloatMatrixView keys, FloatMatrixView values);

  // The same with every field in the caller's hand; `store` is filled in on the first message.
  absl::Status Append(v1::AppendRequest request);

  // Waits until all is acknowledged. OK means that every request is written, as durably as it
  // asked. Calling it again returns the same.
  absl::StatusOr<AppendSummary> Finish();

  AppendSummary acknowledged() const;

 private:
  friend class Client;
  class Impl;
  explicit AppendStream(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_APPEND_STREAM_H_
