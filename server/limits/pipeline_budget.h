#ifndef SOFTLOOKUP_SERVER_LIMITS_PIPELINE_BUDGET_H_
#define SOFTLOOKUP_SERVER_LIMITS_PIPELINE_BUDGET_H_

#include <algorithm>
#include <cstddef>
#include <optional>

#include "core/base/check.h"

namespace softlookup::server {

// How far a stream reads ahead of the responses that its client takes. Beyond it the next request
// stays unread, and HTTP/2 flow control slows the sender down. Not thread-safe.
class PipelineBudget {
 public:
  // At most `count_max` requests that are not yet responded to, and about `bytes_max` bytes of
  // them and of the responses that wait.
  PipelineBudget(std::size_t count_max, std::size_t bytes_max)
      : count_max_(count_max), bytes_max_(bytes_max) {}

  // Whether one more request may be read. An idle stream always reads.
  bool HasRoom() const {
    // A response that is not there yet will be as large as those before it, or a quarter of all.
    const std::size_t expected_bytes = largest_response_bytes_.value_or(bytes_max_ / 4);
    return count_ == 0 ||
           (count_ < count_max_ && bytes_ + unanswered_count_ * expected_bytes < bytes_max_);
  }

  // A request was read; its response is there, and the request no longer; it was written.
  void OnRead(std::size_t request_bytes) {
    ++count_;
    ++unanswered_count_;
    bytes_ += request_bytes;
  }
  void OnAnswer(std::size_t request_bytes, std::size_t response_bytes) {
    SOFTLOOKUP_CHECK(unanswered_count_ > 0 && bytes_ >= request_bytes)
        << unanswered_count_ << " unanswered, " << request_bytes << " of " << bytes_ << " bytes";
    --unanswered_count_;
    bytes_ += response_bytes;
    bytes_ -= request_bytes;
    largest_response_bytes_ = std::max(largest_response_bytes_.value_or(0), response_bytes);
  }
  void OnWritten(std::size_t response_bytes) {
    SOFTLOOKUP_CHECK(count_ > 0 && bytes_ >= response_bytes)
        << count_ << " in progress, " << response_bytes << " of " << bytes_ << " bytes";
    --count_;
    bytes_ -= response_bytes;
  }

 private:
  const std::size_t count_max_;
  const std::size_t bytes_max_;
  std::size_t count_ = 0;
  std::size_t unanswered_count_ = 0;
  std::size_t bytes_ = 0;
  std::optional<std::size_t> largest_response_bytes_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_PIPELINE_BUDGET_H_
