#ifndef SOFTLOOKUP_CLIENT_LOADTEST_CONDITION_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_CONDITION_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/loadtest/load_result.h"

namespace softlookup::loadtest {

// Compares a figure of a run with a bound, such as "p99>20ms", "errors>0", "rejected>=1%" or
// "append.p99.9>50ms".
//
// Some figures are times, whose bounds have a unit (ns, us, ms, s): any percentile such as p50 or
// p99.999, mean, min and max, also of one kind of calls, such as "lookup.p99", "append.mean" or
// "rejected.p99"; and late, the 99th percentile of lateness. The others are rate, the calls per
// second that ended OK; and errors, rejected and overflow, which are numbers of calls, or with %
// percentages of all calls that were due.
class Condition {
 public:
  // InvalidArgument if `text` is no condition. The message says what would be right.
  static absl::StatusOr<Condition> Parse(std::string_view text);

  // Returns the figure of `result` in seconds, calls per second, calls or per cent. A time or a
  // percentage of no calls is NaN.
  double FigureOf(const LoadResult& result) const;

  // False if the figure is NaN.
  bool Holds(const LoadResult& result) const;

  // Returns a text such as "p99 is 23.4 ms".
  std::string Describe(const LoadResult& result) const;

  const std::string& text() const { return text_; }
  // The figure's name, such as "p99".
  const std::string& figure() const { return figure_; }
  // In the unit of FigureOf().
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

// Parses service level objectives such as "p99=20ms" or "p99=20ms,mean=5ms": conditions that must
// hold. There "=" means at most, or for rate at least. InvalidArgument if one is no condition, or
// bounds its figure from the other side.
absl::StatusOr<std::vector<Condition>> ParseObjectives(std::string_view text);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_CONDITION_H_
