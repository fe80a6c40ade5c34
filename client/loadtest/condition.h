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
// These figures exist:
//   - Times, whose bounds have a unit (ns, us, ms, s): any percentile such as p50 or p99.999, mean,
//     min and max. They can be those of one kind of calls, such as "lookup.p99", "append.mean" or
//     "rejected.p99". The time "late" is the 99th percentile of lateness.
//   - rate: the calls per second that ended OK.
//   - errors, rejected and overflow: numbers of calls. If the bound has a %, they are percentages
//     of all calls of the measurement window, those that were due but not sent included.
class Condition {
 public:
  // InvalidArgument if `text` is no condition. The message says what a correct one looks like.
  static absl::StatusOr<Condition> Parse(std::string_view text);

  // Returns the figure of `result` in seconds, calls per second, calls or per cent. NaN for a time
  // or a percentage if there are no calls.
  double FigureOf(const LoadResult& result) const;

  // Whether the comparison of `result`'s figure with the bound is true. False if the figure is NaN.
  bool Holds(const LoadResult& result) const;

  // Returns a text such as "p99 is 23.4 ms".
  std::string Describe(const LoadResult& result) const;

  const std::string& text() const { return text_; }
  // Whether the comparison is "=" or "==".
  bool is_equality() const { return comparison_ == Comparison::kEqual; }
  // The figure's name, such as "p99".
  const std::string& figure() const { return figure_; }
  // The bound, in the unit of FigureOf().
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

// Parses service level objectives, which are conditions that must hold, such as "p99=20ms" or
// "p99=20ms,mean=5ms". In an objective, "=" means at most, but for the figure rate it means at
// least. InvalidArgument if a part is no condition, is an upper bound on rate, or is a lower bound
// on any other figure.
absl::StatusOr<std::vector<Condition>> ParseObjectives(std::string_view text);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_CONDITION_H_
