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

// The progress of a stream, as far as the server's acknowledgements tell it.
struct AppendSummary {
  std::uint64_t acknowledged_requests = 0;
  // Rows written, without those that ON_CONFLICT_SKIP left out. If the answer to a request was
  // lost, it is not known how many rows were left out, so all rows of that request count.
  std::uint64_t acknowledged_rows = 0;
  std::uint64_t row_count = 0;  // Rows of the store as of the last answer; 0 before the first.
  // Revision of the store as of the last answer; 0 before the first. A lookup with this
  // `min_revision` sees the rows of all requests that were answered.
  std::uint64_t revision = 0;
  // Attempts to connect again after a failure. Always 0 without a writer.
  std::uint64_t reconnections = 0;
  // The last failure that left requests to be sent again. OK once an answer has come after that
  // failure. Always OK without a writer.
  absl::Status outage;
};

struct AppendStreamOptions {
  // The options below change what the stream does.

  // When the server acknowledges rows that Append() gets as matrices. An AppendRequest has its own
  // `acknowledge`.
  v1::Acknowledge acknowledge = v1::ACKNOWLEDGE_DURABLE;
  // Longest time from the opening of the stream to its end. > 0.
  absl::Duration deadline = absl::InfiniteDuration();

  // The writer's name, 1-128 bytes, or empty. With a writer, the stream outlives its connections.
  // Each row is written once and in order, even if the connection, the server or this process
  // fails: see AppendStream. Without a writer, the stream ends with its connection.
  //
  // The server keeps the last sequence of each writer of a store for as long as the store exists.
  // In a store, only one stream at a time may use a name. A name must stand for one series of rows,
  // such as those of a file, a queue or a sensor. A stream that finds another sender of its writer
  // ends with FailedPrecondition. If the two send different rows, those that this stream has not
  // had acknowledged may be missing from the store: send them in the name of another writer. Not
  // every second sender is found, because the server takes any sequence above the last one.
  std::string writer = {};
  // Longest outage that a stream with a writer survives. > 0. An outage begins with a failure while
  // requests are unacknowledged, or with the first request after a failure, and ends with the next
  // acknowledgement. After `outage_max` no attempt begins, and the one in progress is cancelled.
  // The stream then ends with the last failure. Its message tells the cause, such as a refused
  // connection.
  absl::Duration outage_max = absl::Minutes(2);

  // The stream calls this after every acknowledgement and before every attempt to connect again.
  // May be empty. It runs on threads of the stream, on one at a time, and never after Finish() has
  // returned or the stream is destroyed. The stream takes no further acknowledgement until the
  // function returns. The function must not call Append() or Finish() of the stream, and must not
  // destroy the stream.
  std::function<void(const AppendSummary&)> on_progress = {};

  // The options below change the speed. They bound the window: the requests that are not yet
  // acknowledged. A request that is larger than the window is sent alone. With a writer, the stream
  // holds copies of the requests in the window.
  int unacknowledged_requests_max = 64;                            // At least 1.
  std::int64_t unacknowledged_bytes_max = std::int64_t{32} << 20;  // At least 1.
};

// Appends to one store in a pipeline: requests are sent without waiting for the answers to earlier
// ones, up to a bounded window. Client::OpenAppendStream() opens the stream, which may outlive the
// Client.
//
// Only one thread at a time may call Append() or Finish(). Any thread may call the other methods at
// any time.
//
// The first failure is sticky: every later Append() and Finish() returns it. Its message says how
// many rows had been acknowledged. The server may also have written the first few of the requests
// that are not acknowledged, each one whole.
//
// Without a writer the stream sends no request twice: after a broken connection, the server may
// already have applied the request.
//
// With AppendStreamOptions::writer, the stream survives the failures that RetryOptions lists, such
// as UNAVAILABLE if the server stops, crashes or cannot be reached. The stream then waits as
// RetryOptions says, and connects again, as often as needed: it ignores attempts_max. It asks the
// server for the writer's last sequence, and sends the requests that come after that sequence. Any
// other failure, the deadline or `outage_max` ends the stream. If the connection breaks while all
// requests are acknowledged, the stream counts and reports a reconnection at once. But it connects
// again only at the next Append().
//
// A process that was restarted opens a stream with the same writer and skips the first
// resumed_from().last_sequence() rows. The store already has these rows from earlier streams of the
// writer. A killed process may leave requests in flight. A process that starts soon after must cut
// the rows into the same requests. Otherwise one of its requests could overlap a request in flight,
// and the server could write rows twice. If a request in flight is applied after the new stream
// was opened, the new stream takes it for another sender's and ends with FailedPrecondition. Then
// open it once more: no row is lost.
class AppendStream {
 public:
  // A stream that was moved from may only be destroyed or assigned to.
  AppendStream(AppendStream&&) noexcept;
  AppendStream& operator=(AppendStream&&) noexcept;
  // Cancels the stream unless it is finished, and waits for no acknowledgement. Unacknowledged
  // requests may or may not be written.
  ~AppendStream();

  // Sends the rows as one atomic request: `keys` [N x key_dim] and `values` [N x value_dim], whose
  // data may be reused when this returns. Blocks while the window is full. OK does not mean that
  // the rows are written. Without a writer, they are sent. With a writer, they may still wait to be
  // sent. Only Finish() says that they are written: without it, rows whose Append() returned OK may
  // be lost. InvalidArgument, which is not sticky, if a view does not hold rows * cols elements.
  // FailedPrecondition after Finish().
  absl::Status Append(FloatMatrixView keys, FloatMatrixView values);

  // Sends `request` in the same way. The caller sets all fields except `store`, which the stream
  // sets; it may be empty or the stream's. Only if a stream without a writer was opened with an
  // empty store name does the caller set `store`. With AppendStreamOptions::writer, the stream also
  // sets `writer` and `sequence`. These errors are not sticky: InvalidArgument if the request names
  // another store, or, with a writer, has a writer or a sequence, and OutOfRange if no sequence is
  // left for its rows.
  absl::Status Append(v1::AppendRequest request);

  // Waits until all requests are acknowledged, and ends the stream. OK means that every request is
  // written, as durably as it asked for. A second call returns the same result.
  absl::StatusOr<AppendSummary> Finish();

  // Ends the stream early: soon after, Append() and Finish() return Cancelled, even if they are
  // waiting. But Finish() may return OK if all requests are acknowledged. Unacknowledged requests
  // may or may not be written. A later stream with the same writer tells which rows were written:
  // see resumed_from(). Has no effect once Finish() has returned.
  void Cancel();

  // Returns what the server has acknowledged so far.
  AppendSummary acknowledged() const;

  // Returns the writer as the server knew it when the stream was opened. `last_sequence` is the
  // number of rows that the server had taken from the writer's earlier streams, 0 for a new writer.
  // It includes rows that ON_CONFLICT_SKIP left out. `last_position` is the position of the last
  // row that the writer wrote, 0 if it wrote none. If the stream has no writer, the result is
  // empty.
  v1::Writer resumed_from() const;

 private:
  friend class Client;
  explicit AppendStream(std::unique_ptr<client_internal::AppendPipeline> pipeline);

  std::unique_ptr<client_internal::AppendPipeline> pipeline_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_APPEND_STREAM_H_
