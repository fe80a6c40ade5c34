#ifndef SOFTLOOKUP_SERVER_LIMITS_PIPELINE_BUDGET_H_
#define SOFTLOOKUP_SERVER_LIMITS_PIPELINE_BUDGET_H_

#include <algorithm>
#include <cstddef>
#include <optional>

#include "core/base/check.h"

namespace softlookup::server {

// Bounds how far a stream reads ahead of the responses that its client takes. Beyond the bound, the
// next request stays unread, and HTTP/2 flow control slows the sender down. Not thread-safe.
class PipelineBudget {
 public:
  // Allows `count_max` requests whose responses are not written yet. Allows about `bytes_max` bytes
  // of these requests and their responses.
  PipelineBudget(std::size_t count_max, std::size_t bytes_max)
      : count_max_(count_max), bytes_max_(bytes_max) {}

  // Whether one more request may be read. Always true if no request is in progress.
  bool MayRead() const {
    // Assumes that each response still to come is as large as the largest one so far. Before the
    // first response, assumes a quarter of the budget for each.
    const std::size_t expected_bytes = largest_response_bytes_.value_or(bytes_max_ / 4);
    return count_ == 0 ||
           (count_ < count_max_ && bytes_ + unanswered_count_ * expected_bytes < bytes_max_);
  }

  // A request was read.
  void OnRead(std::size_t request_bytes) {
    ++count_;
    ++unanswered_count_;
    bytes_ += request_bytes;
  }
  // The response to a request exists, and the request was freed.
  void OnAnswer(std::size_t request_bytes, std::size_t response_bytes) {
    SOFTLOOKUP_CHECK(unanswered_count_ > 0 && bytes_ >= request_bytes)
        << unanswered_count_ << " unanswered, " << request_bytes << " of " << bytes_ << " bytes";
    --unanswered_count_;
    bytes_ += response_bytes;
    bytes_ -= request_bytes;
    largest_response_bytes_ = std::max(largest_response_bytes_.value_or(0), response_bytes);
  }
  // A response was written.
  void OnWritten(std::size_t response_bytes) {
    SOFTLOOKUP_CHECK(count_ > 0 && bytes_ >= response_bytes)
        << count_ << " in progress, " << response_bytes << " of " << bytes_ << " bytes";
    --count_;
    bytes_ -= response_bytes;
  }

 private:
  const std::size_t count_max_;
  const std::size_t bytes_max_;
  std::size_t count_ = 0;             // Requests read whose responses are not written.
  std::size_t unanswered_count_ = 0;  // Requests of count_ that have no response yet.
  std::size_t bytes_ = 0;             // Of unanswered requests and unwritten responses.
  std::optional<std::size_t> largest_response_bytes_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_PIPELINE_BUDGET_H_
