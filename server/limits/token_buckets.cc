#include "server/limits/token_buckets.h"

#include <algorithm>

namespace softlookup::server {
namespace {

// Returns the time until a bucket has enough to take `count`. The bucket has `left` now, in seconds
// of `rate`. Returns zero if `left` is enough, if `count` is 0, or if `rate` is 0, which means no
// limit.
absl::Duration WaitFor(double left, double count, double rate) {
  if (rate <= 0 || count <= 0) return absl::ZeroDuration();
  return absl::Seconds(std::max(0.0, std::min(1.0, count / rate) - left));
}

}  // namespace

std::optional<TokenBuckets::Refusal> TokenBuckets::Take(const Rates& rates, std::int64_t requests,
                                                        std::int64_t rows, absl::Time now) {
  const double seconds = absl::ToDoubleSeconds(now - as_of_);
  requests_ = std::min(1.0, requests_ + seconds);
  rows_ = std::min(1.0, rows_ + seconds);
  as_of_ = now;
  const auto request_count = static_cast<double>(requests);
  const auto row_count = static_cast<double>(rows);
  const auto refuse = [](absl::string_view what, double rate, absl::Duration wait) {
    return Refusal{what, rate, std::max(wait, absl::Milliseconds(1))};
  };
  if (const absl::Duration wait = WaitFor(requests_, request_count, rates.requests_per_second);
      wait > absl::ZeroDuration()) {
    return refuse("requests", rates.requests_per_second, wait);
  }
  if (const absl::Duration wait = WaitFor(rows_, row_count, rates.rows_per_second);
      wait > absl::ZeroDuration()) {
    return refuse("rows", rates.rows_per_second, wait);
  }
  if (rates.requests_per_second > 0) requests_ -= request_count / rates.requests_per_second;
  if (rates.rows_per_second > 0) rows_ -= row_count / rates.rows_per_second;
  return std::nullopt;
}

bool TokenBuckets::IsFull(absl::Time now) const {
  return std::min(requests_, rows_) + absl::ToDoubleSeconds(now - as_of_) >= 1;
}

}  // namespace softlookup::server
