#ifndef SOFTLOOKUP_APPEND_STREAM_H_
#define SOFTLOOKUP_APPEND_STREAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "softlookup/float_matrix.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup {

namespace client_internal {
class AppendPipeline;
}  // namespace client_internal

// What a stream has written so far, counted from acknowledgements.
struct AppendSummary {
  std::uint64_t acknowledged_requests = 0;
  // Rows written. Where ON_CONFLICT_SKIP leaves some out, and the answer that would have said so
  // was lost with its connection, all rows of the request count.
  std::uint64_t acknowledged_rows = 0;
  std::uint64_t row_count = 0;  // The store's, after the last request answered; 0 before one.
  std::uint64_t revision = 0;   // Likewise: pass it as `min_revision` to read your own write.
  // Times that the stream, its connection lost, set out to connect anew. Without a writer always 0.
  std::uint64_t reconnections = 0;
};

struct AppendStreamOptions {
  // Changes behaviour.
  v1::Acknowledge acknowledge = v1::ACKNOWLEDGE_DURABLE;  // For rows given as matrices.
  absl::Duration deadline = absl::InfiniteDuration();     // Of the whole stream, from its opening.

  // Makes the stream survive its connections: each row is written once, in order, whenever the
  // connection, the server or this process breaks. See AppendStream. 1-128 bytes, or empty: the
  // stream ends with its connection.
  //
  // The server remembers for each store how far each writer got, for as long as the store is there.
  // A name belongs to one stream at a time, and to one sequence of rows: those of a file, of a
  // queue, of a sensor.
  std::string writer;
  // How long a stream with a writer goes on trying while nothing is acknowledged, from the first
  // failure on; then that is the stream's. > 0.
  absl::Duration outage_max = absl::Minutes(2);

  // Called after every acknowledgement and before every attempt to connect anew, by a thread of the
  // stream's, never by two at once, and not after Finish() has returned or the stream is gone.
  // Until it returns nothing more is acknowledged. It must not call the stream's Append() or
  // Finish(), nor destroy it.
  std::function<void(const AppendSummary&)> on_progress;

  // Changes speed. A request that alone is larger than the window travels alone. With a writer, the
  // window is also what the stream keeps in memory.
  int unacknowledged_requests_max = 64;                            // At least 1.
  std::int64_t unacknowledged_bytes_max = std::int64_t{32} << 20;  // At least 1.
};

// A pipeline of appends to one store: requests follow each other without waiting for the answers,
// inside a bounded window. Opened by Client::OpenAppendStream, whose Client it may outlive.
//
// Append() and Finish() belong to one thread at a time; acknowledged() and resumed_from() may be
// called by any.
//
// The first failure is sticky: every later call returns it. Its message says how many rows had been
// acknowledged; of the rows after those, a prefix of whole requests may have been written.
//
// Without a writer nothing is retried, because a request that was cut off may have been applied.
//
// With AppendStreamOptions::writer, a connection that breaks is no failure: UNAVAILABLE, such as of
// a server that stops, crashes or cannot be reached, and RESOURCE_EXHAUSTED if the server says when
// to come back. The stream waits as RetryOptions says, but for its attempts_max, connects again,
// asks the server how far the writer got, and sends what is missing. It ends with the first failure
// that is about a request or the store, with the deadline, or after `outage_max`. It connects for
// rows only: a connection that breaks while all is acknowledged is replaced at the next Append().
//
// A process that starts again opens a stream with the same writer and goes on with the rows after
// the first resumed_from().last_sequence() ones, all sent by streams of this writer since the store
// was made. If it may start while requests of its predecessor are still on their way, which a
// predecessor that was killed leaves behind, then it must cut the rows into the same requests: one
// that ends elsewhere would overlap with what may still arrive.
class AppendStream {
 public:
  AppendStream(AppendStream&&) noexcept;
  AppendStream& operator=(AppendStream&&) noexcept;
  // Cancels the stream unless it is finished: unacknowledged requests may or may not be written.
  ~AppendStream();

  // Sends the rows as one atomic request; `keys` [N x key_dim] and `values` [N x value_dim] may be
  // reused at once. Blocks while the window is full. OK means sent, with a writer even less: taken
  // over, not written. InvalidArgument, which is not sticky, if a view's size is not rows * cols.
  absl::Status Append(FloatMatrixView keys, FloatMatrixView values);

  // The same with every field in the caller's hand; `store` is filled in on the first message. With
  // AppendStreamOptions::writer the stream fills in `writer` and `sequence`, too: InvalidArgument,
  // which is not sticky, if the request has one.
  absl::Status Append(v1::AppendRequest request);

  // Waits until all is acknowledged. OK means that every request is written, as durably as it
  // asked. Calling it again returns the same.
  absl::StatusOr<AppendSummary> Finish();

  AppendSummary acknowledged() const;

  // Where the writer stood when the stream was opened: last_sequence is the number of rows that its
  // earlier streams had sent and the server has dealt with, 0 if there were none; last_position is
  // that of the last row written. Empty without a writer.
  v1::Writer resumed_from() const;

 private:
  friend class Client;
  explicit AppendStream(std::unique_ptr<client_internal::AppendPipeline> pipeline);

  std::unique_ptr<client_internal::AppendPipeline> pipeline_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_APPEND_STREAM_H_
