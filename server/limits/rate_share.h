#ifndef SOFTLOOKUP_SERVER_LIMITS_RATE_SHARE_H_
#define SOFTLOOKUP_SERVER_LIMITS_RATE_SHARE_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace softlookup::server {

// What a second brings. 0: no limit.
struct Rates {
  double requests_per_second = 0;
  double rows_per_second = 0;

  bool is_limited() const { return requests_per_second > 0 || rows_per_second > 0; }
};

// What is left of somebody's rates: at most a second's worth, so a burst is no longer than that.
// Times are told. Not thread-safe.
class RateShare {
 public:
  explicit RateShare(absl::Time now) : as_of_(now) {}

  // What a request is refused for, and when to come back.
  struct Refusal {
    absl::string_view what;  // "requests" or "rows".
    double rate = 0;
    absl::Duration wait;  // At least a millisecond.
  };

  // Takes `requests` and `rows`, unless there is too little left. More than a second brings needs a
  // whole second's; the rest is owed.
  std::optional<Refusal> Take(const Rates& rates, std::int64_t requests, std::int64_t rows,
                              absl::Time now);

  // Whether nothing would be different if this were made anew at `now`.
  bool IsWhole(absl::Time now) const;

 private:
  // Seconds' worth, at most 1.
  double requests_ = 1;
  double rows_ = 1;
  absl::Time as_of_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_RATE_SHARE_H_
