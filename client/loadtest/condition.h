#ifndef SOFTLOOKUP_CLIENT_LOADTEST_CONDITION_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_CONDITION_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/loadtest/load_result.h"

namespace softlookup::loadtest {

// A figure of a run beside a bound: "p99>20ms", "errors>0", "rejected>=1%", "append.p99.9>50ms".
//
// Times, which take a unit (ns, us, ms, s): p50 to p99.999 (any percentile), mean, min, max, also
// of one kind of calls, "lookup.p99", "append.mean", "rejected.p99"; and late, the 99th percentile
// of how late calls were sent. Others: rate, the calls a second that ended OK; errors, rejected and
// overflow, numbers of calls, or with % their part of all that were due.
class Condition {
 public:
  // InvalidArgument says what would be right.
  static absl::StatusOr<Condition> Parse(std::string_view text);

  // Of a run; NaN if no call has that figure. In seconds, calls a second, calls, or per cent.
  double FigureOf(const LoadResult& result) const;

  // False where there is no such figure.
  bool Holds(const LoadResult& result) const;

  // "p99 is 23.4 ms".
  std::string Describe(const LoadResult& result) const;

  const std::string& text() const { return text_; }
  // "p99"; and what it is compared with, in the unit of FigureOf().
  const std::string& figure() const { return figure_; }
  double bound() const { return bound_; }

 private:
  enum class Unit { kSeconds, kPerSecond, kCount, kPercent };
  enum class Comparison { kLess, kAtMost, kMore, kAtLeast, kEqual };
  friend absl::StatusOr<std::vector<Condition>> ParseObjectives(std::string_view);

  std::string text_;
  std::string figure_;
  Comparison comparison_ = Comparison::kMore;
  Unit unit_ = Unit::kCount;
  double bound_ = 0;
};

// Service level objectives, "p99=20ms" or "p99=20ms,mean=5ms": conditions that shall hold, where =
// means at most (rate: at least). InvalidArgument also for a bound on the other side.
absl::StatusOr<std::vector<Condition>> ParseObjectives(std::string_view text);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_CONDITION_H_
