#ifndef SOFTLOOKUP_SERVER_LIMITS_TOKEN_BUCKETS_H_
#define SOFTLOOKUP_SERVER_LIMITS_TOKEN_BUCKETS_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace softlookup::server {

// Maximum rates. 0: no limit.
struct Rates {
  double requests_per_second = 0;
  double rows_per_second = 0;

  bool is_limited() const { return requests_per_second > 0 || rows_per_second > 0; }
};

// The token buckets of one sender, a tenant or an identity, hold it to its rates of requests and
// rows. Each bucket fills at its rate, up to a second's worth, which bounds a burst. The current
// time is passed in. Not thread-safe.
class TokenBuckets {
 public:
  explicit TokenBuckets(absl::Time now) : as_of_(now) {}

  // Why a request is refused, and how long its sender should wait.
  struct Refusal {
    absl::string_view what;  // "requests" or "rows".
    double rate = 0;
    absl::Duration wait;  // At least a millisecond.
  };

  // Takes `requests` and `rows`, and returns nullopt. If too few are left, takes nothing and
  // returns why. To take more than a second's worth, a whole second's worth must be left. The
  // sender then owes the rest, and is refused until its rates have made up for it.
  std::optional<Refusal> Take(const Rates& rates, std::int64_t requests, std::int64_t rows,
                              absl::Time now);

  // Whether a second's worth of requests and of rows is left at `now`, as in new buckets.
  bool IsFull(absl::Time now) const;

 private:
  // The requests and the rows that were left at as_of_, each in seconds of its rate. At most 1.
  // Negative if the sender owes.
  double requests_ = 1;
  double rows_ = 1;
  absl::Time as_of_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_TOKEN_BUCKETS_H_
