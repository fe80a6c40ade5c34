#include "client/cpp/resend_queue.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace softlookup::client_internal {
namespace {

// Returns the number of rows of `request`. Returns 1 for an empty request, so that no two requests
// have the same sequence. The server refuses the empty request.
std::uint32_t RowsOf(const v1::AppendRequest& request) {
  return std::max({1u, request.keys().rows(), request.inputs().rows()});
}

// The error of a stream that finds rows on the server, up to `sequence`, that it did not send.
absl::Status AnotherSender(std::uint64_t sequence, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat(
      "another sender uses this writer's name, or requests of an earlier one arrived late: the ",
      "server already has its sequence ", sequence, ", ", why,
      "; if all of them send the same rows, a new stream goes on after its resumed_from()"));
}

}  // namespace

absl::Status ResendQueue::Push(v1::AppendRequest request) {
  const std::uint32_t rows = RowsOf(request);
  if (last_pushed_ > std::numeric_limits<std::uint64_t>::max() - rows) {
    return absl::OutOfRangeError(
        absl::StrCat("no sequences are left after ", last_pushed_, "; use another writer"));
  }
  request.set_sequence(last_pushed_ += rows);
  const auto bytes = static_cast<std::int64_t>(request.ByteSizeLong());
  entries_.push_back(
      {.request = std::make_shared<const v1::AppendRequest>(std::move(request)), .bytes = bytes});
  bytes_ += bytes;
  return absl::OkStatus();
}

ResendQueue::Request ResendQueue::NextToSend() {
  if (all_sent()) return nullptr;
  const Request& request = entries_[sent_++].request;
  last_sent_ = std::max(last_sent_, request->sequence());
  return request;
}

absl::Status ResendQueue::Acknowledge(const v1::AppendResponse& response) {
  if (sent_ == 0 || response.sequence() != entries_.front().request->sequence()) {
    return absl::InternalError(absl::StrCat("the server answered sequence ", response.sequence(),
                                            ", which is not the next to be answered"));
  }
  if (response.duplicate() && !entries_.front().sent_before) {
    return AnotherSender(response.sequence(), "which this stream has sent only once");
  }
  const Request request = entries_.front().request;
  // A duplicate was written over an earlier connection, and its first answer was lost with that
  // connection. That answer alone said how many rows ON_CONFLICT_SKIP left out, so all rows count.
  PopFront(response.duplicate() ? RowsOf(*request) : response.appended_count());
  acknowledged_.row_count = response.row_count();
  acknowledged_.revision = response.revision();
  acknowledged_.outage = absl::OkStatus();
  return absl::OkStatus();
}

absl::Status ResendQueue::Rewind(std::uint64_t last_sequence) {
  if (last_sequence < acknowledged_sequence_) {
    return absl::DataLossError(absl::StrCat("the server knows the writer's rows up to sequence ",
                                            last_sequence, " only, but had acknowledged ",
                                            acknowledged_sequence_));
  }
  if (last_sequence > last_sent_) {
    return AnotherSender(last_sequence,
                         absl::StrCat("and the last that this stream has sent is ", last_sent_));
  }
  for (; sent_ > 0; --sent_) entries_[sent_ - 1].sent_before = true;
  while (entries_.size() > 1 && entries_.front().request->sequence() <= last_sequence) {
    PopFront(RowsOf(*entries_.front().request));
  }
  return absl::OkStatus();
}

void ResendQueue::PopFront(std::uint64_t rows) {
  acknowledged_sequence_ = entries_.front().request->sequence();
  bytes_ -= entries_.front().bytes;
  entries_.pop_front();
  if (sent_ > 0) --sent_;
  ++acknowledged_.acknowledged_requests;
  acknowledged_.acknowledged_rows += rows;
}

}  // namespace softlookup::client_internal
