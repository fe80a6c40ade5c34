#ifndef SOFTLOOKUP_CLIENT_CPP_RESEND_QUEUE_H_
#define SOFTLOOKUP_CLIENT_CPP_RESEND_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "absl/status/status.h"
#include "softlookup/append_stream.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup::client_internal {

// The requests of one writer that are not acknowledged yet, oldest first, and what has been
// acknowledged so far. Knows nothing of connections. Not thread-safe.
//
// The sequence of a request is the number of rows that the writer has sent up to its end, so that
// a writer's last sequence says where in its rows to go on, however they were cut into requests.
//
// Why each row ends up in the store once and in order, whatever breaks and whenever: every
// connection sends a run of requests without a gap, and the server applies of each connection a
// run without a gap, in order, leaving out what is not above the writer's last sequence. A
// connection's run starts at most one request behind the last sequence that the server told before
// it; while the server keeps what it has, that sequence only grows, so no run ever starts beyond
// what is there. Hence requests of an older connection that the server still comes across, after
// it told its last sequence and even after newer ones were resent, either are duplicates or are
// exactly the next ones: then the same requests, sent anew, become the duplicates. That works as
// requests keep their sequences and their rows when they are sent again. A server that does not
// keep what it has, such as one that comes back with an older disk, is found out by Rewind().
class ResendQueue {
 public:
  using Request = std::shared_ptr<const v1::AppendRequest>;

  // The writer goes on behind `last_sequence`, 0 if it is new.
  explicit ResendQueue(std::uint64_t last_sequence)
      : last_pushed_(last_sequence), acknowledged_sequence_(last_sequence) {}

  // Takes a request and gives it its sequence. OutOfRange if the sequences are used up.
  absl::Status Push(v1::AppendRequest request);

  // The oldest request that was not sent since the last Rewind(), which counts as sent now; null
  // if there is none. It stays valid when it is acknowledged.
  Request NextToSend();

  // Takes the answer to the oldest request that was sent. Internal if it is none to it.
  absl::Status Acknowledge(const v1::AppendResponse& response);

  // On a new connection, whose server says that `last_sequence` is the writer's last: nothing has
  // been sent on it, and what the server has is acknowledged. But if that is all, the newest
  // request stays: its answer, as a duplicate, tells the store's row count and revision.
  //
  // DataLoss if the server lacks what it had acknowledged, FailedPrecondition if it has what this
  // queue never had: another stream uses the name of the writer.
  absl::Status Rewind(std::uint64_t last_sequence);

  bool empty() const { return entries_.empty(); }
  bool all_sent() const { return sent_ == entries_.size(); }
  std::size_t size() const { return entries_.size(); }
  std::int64_t bytes() const { return bytes_; }
  const AppendSummary& acknowledged() const { return acknowledged_; }
  void CountReconnection() { ++acknowledged_.reconnections; }

 private:
  struct Entry {
    Request request;
    std::int64_t bytes;
  };

  // Drops the oldest request, of which the server wrote `rows`.
  void PopFront(std::uint64_t rows);

  std::deque<Entry> entries_;
  std::size_t sent_ = 0;    // Of entries_, from the front.
  std::int64_t bytes_ = 0;  // Of entries_.
  std::uint64_t last_pushed_;
  std::uint64_t acknowledged_sequence_;
  AppendSummary acknowledged_;
};

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_RESEND_QUEUE_H_
