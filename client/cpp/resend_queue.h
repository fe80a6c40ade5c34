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

// The requests of one writer that are not acknowledged yet, oldest first, and a summary of the
// acknowledged ones. Knows nothing of connections. Not thread-safe.
//
// A request's sequence is the number of rows that the writer has sent up to the end of the request.
// So the writer's last sequence tells which row comes next, however the rows were cut into
// requests.
//
// Each row is written once and in order, whatever fails at whatever time, for these reasons:
//   - A connection sends consecutive requests. The server applies them in order and without a gap,
//     but skips those whose sequence is not above the writer's last one.
//   - Before each connection the server reports the writer's last sequence. The first request on
//     the connection is the one after that sequence, or an earlier one. While the server keeps its
//     data, its last sequence only grows. So no connection leaves a gap after the rows that the
//     server has.
//   - The server may still process requests of an older connection after it reported the last
//     sequence, or even after a newer connection resent them. Each such request is either a
//     duplicate or exactly the next one. In the second case the resent request becomes the
//     duplicate.
//   - A request has the same sequence and rows each time it is sent.
// Rewind() detects a server that has not kept its data, such as one restored from an older disk.
// Acknowledge() and Rewind() detect another sender of the same writer: then the server has rows up
// to a sequence that this queue has never sent, or sent only once and did not get applied.
class ResendQueue {
 public:
  using Request = std::shared_ptr<const v1::AppendRequest>;

  // `last_sequence` is the writer's last one on the server, 0 if the writer is new.
  explicit ResendQueue(std::uint64_t last_sequence)
      : last_pushed_(last_sequence),
        last_sent_(last_sequence),
        acknowledged_sequence_(last_sequence) {}

  // Sets the sequence of `request` and adds it. OutOfRange if no sequence is left for its rows.
  absl::Status Push(v1::AppendRequest request);

  // Returns the oldest request that was not sent since the last Rewind(), and counts it as sent.
  // Null if there is none. The pointer stays valid after the request is acknowledged.
  Request NextToSend();

  // Takes `response` as the answer to the oldest request, and drops that request. Internal if that
  // request is not sent, or if `response` has another sequence. FailedPrecondition if `response` is
  // a duplicate but the request was sent only once, because another sender then uses the writer's
  // name: the rows that the server has may be other rows.
  absl::Status Acknowledge(const v1::AppendResponse& response);

  // Prepares for a new connection, on which nothing has been sent. `last_sequence` is the writer's
  // last one, as the server reports it: requests up to that sequence count as acknowledged and are
  // dropped. But the newest request always stays. If the server already has it, it is sent again,
  // and the answer to this duplicate tells the store's row count and revision.
  //
  // DataLoss if the server lacks rows that it had acknowledged. FailedPrecondition if
  // `last_sequence` is above all sequences that were ever sent, because another sender then uses
  // the writer's name.
  absl::Status Rewind(std::uint64_t last_sequence);

  bool empty() const { return entries_.empty(); }
  bool all_sent() const { return sent_ == entries_.size(); }
  std::size_t size() const { return entries_.size(); }
  std::int64_t bytes() const { return bytes_; }
  const AppendSummary& acknowledged() const { return acknowledged_; }
  // Counts a reconnection after `failure`. If requests are still unacknowledged, `failure` becomes
  // AppendSummary::outage.
  void BeginReconnection(const absl::Status& failure) {
    ++acknowledged_.reconnections;
    SetOutage(failure);
  }
  // As BeginReconnection(), but counts none.
  void SetOutage(const absl::Status& failure) {
    if (!empty()) acknowledged_.outage = failure;
  }

 private:
  struct Entry {
    Request request;
    std::int64_t bytes;
    bool sent_before = false;  // Sent on an earlier connection, which may have applied it.
  };

  // Drops the oldest request as acknowledged, with `rows` rows written.
  void PopFront(std::uint64_t rows);

  std::deque<Entry> entries_;
  std::size_t sent_ = 0;       // Entries sent since the last Rewind(): the first `sent_` ones.
  std::int64_t bytes_ = 0;     // Sum over entries_.
  std::uint64_t last_pushed_;  // Sequence of the newest request.
  std::uint64_t last_sent_;    // Sequence of the newest request that was ever sent.
  std::uint64_t acknowledged_sequence_;  // Sequence of the newest request that was acknowledged.
  AppendSummary acknowledged_;
};

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_RESEND_QUEUE_H_
