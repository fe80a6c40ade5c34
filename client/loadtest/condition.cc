#include "client/loadtest/condition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/output/figure_text.h"

namespace softlookup::loadtest {
namespace {

constexpr double kNoFigure = std::numeric_limits<double>::quiet_NaN();

// Returns the number in the name of a percentile: 99.9 for "p99.9". Unset if `figure` is no
// percentile.
std::optional<double> PercentOf(absl::string_view figure) {
  double percent;
  if (!absl::ConsumePrefix(&figure, "p") || figure.empty() || figure[0] < '0' || figure[0] > '9' ||
      !absl::SimpleAtod(figure, &percent) || percent < 0 || percent > 100) {
    return std::nullopt;
  }
  return percent;
}

bool IsTime(absl::string_view figure) {
  if (figure == "late") return true;
  for (const absl::string_view kind : {"lookup.", "append.", "rejected."}) {
    if (absl::ConsumePrefix(&figure, kind)) break;
  }
  return figure == "mean" || figure == "min" || figure == "max" || PercentOf(figure).has_value();
}

bool IsCount(absl::string_view figure) {
  return figure == "errors" || figure == "rejected" || figure == "overflow";
}

double TimeOf(const LatencyHistogram& histogram, absl::string_view figure) {
  if (figure == "mean") return histogram.mean();
  if (figure == "min") return histogram.min();
  if (figure == "max") return histogram.max();
  return histogram.Percentile(PercentOf(figure).value());
}

double TimeOf(const Tally& tally, absl::string_view figure) {
  if (figure == "late") return tally.lateness.Percentile(99);
  if (absl::ConsumePrefix(&figure, "lookup."))
    return TimeOf(tally.of(Method::kLookup).latency, figure);
  if (absl::ConsumePrefix(&figure, "append."))
    return TimeOf(tally.of(Method::kAppend).latency, figure);
  if (absl::ConsumePrefix(&figure, "rejected.")) return TimeOf(tally.rejection, figure);
  return TimeOf(tally.sum().latency, figure);
}

double CountOf(const Tally::OfMethod& calls, absl::string_view figure) {
  if (figure == "rejected") return calls.rejected;
  if (figure == "overflow") return calls.overflow;
  return calls.errors();
}

absl::Status Wrong(std::string_view text, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", absl::string_view(text.data(), text.size()), "\": ", what));
}

}  // namespace

absl::StatusOr<Condition> Condition::Parse(std::string_view text) {
  const std::size_t at = text.find_first_of("<>=");
  if (at == std::string_view::npos) {
    return Wrong(
        text, "is no condition such as 'p99>20ms', in quotes: the shell takes < and > for itself");
  }
  const bool two = at + 1 < text.size() && text[at + 1] == '=';
  Condition condition;
  condition.text_ = std::string(text);
  condition.figure_ = std::string(absl::StripAsciiWhitespace(absl::string_view(text.data(), at)));
  condition.comparison_ = text[at] == '<'   ? (two ? Comparison::kAtMost : Comparison::kLess)
                          : text[at] == '>' ? (two ? Comparison::kAtLeast : Comparison::kMore)
                                            : Comparison::kEqual;
  const std::size_t after = at + (two ? 2 : 1);
  absl::string_view bound =
      absl::StripAsciiWhitespace(absl::string_view(text.data() + after, text.size() - after));
  if (IsTime(condition.figure_)) {
    absl::Duration time;
    if (!absl::ParseDuration(bound, &time) || time < absl::ZeroDuration()) {
      return Wrong(
          text, absl::StrCat(condition.figure_,
                             " is compared with a time such as 20ms or 1.5s, not \"", bound, "\""));
    }
    condition.unit_ = Unit::kSeconds;
    condition.bound_ = absl::ToDoubleSeconds(time);
    return condition;
  }
  if (condition.figure_ == "rate") {
    condition.unit_ = Unit::kPerSecond;
  } else if (IsCount(condition.figure_)) {
    condition.unit_ = absl::ConsumeSuffix(&bound, "%") ? Unit::kPercent : Unit::kCount;
  } else {
    return Wrong(text, absl::StrCat("there is no figure \"", condition.figure_,
                                    "\"; there are p50 to p99.99, mean, min, max (also lookup.p99, "
                                    "append.p99, rejected.p99), late, rate, errors, rejected and "
                                    "overflow"));
  }
  if (!absl::SimpleAtod(bound, &condition.bound_) || !std::isfinite(condition.bound_) ||
      condition.bound_ < 0) {
    return Wrong(text, absl::StrCat(condition.figure_, " is compared with a number of at least 0",
                                    condition.unit_ == Unit::kPerSecond ? "" : " or a percentage",
                                    ", not \"", bound, "\""));
  }
  return condition;
}

double Condition::FigureOf(const LoadResult& result) const {
  switch (unit_) {
    case Unit::kSeconds:
      return TimeOf(result.tally, figure_);
    case Unit::kPerSecond:
      return result.rate();
    case Unit::kCount:
      return CountOf(result.tally.sum(), figure_);
    case Unit::kPercent: {
      const Tally::OfMethod calls = result.tally.sum();
      const double due = calls.finished() + calls.overflow;
      return due == 0 ? kNoFigure : 100 * CountOf(calls, figure_) / due;
    }
  }
  return kNoFigure;
}

bool Condition::Holds(const LoadResult& result) const {
  const double figure = FigureOf(result);
  switch (comparison_) {
    case Comparison::kLess:
      return figure < bound_;
    case Comparison::kAtMost:
      return figure <= bound_;
    case Comparison::kMore:
      return figure > bound_;
    case Comparison::kAtLeast:
      return figure >= bound_;
    case Comparison::kEqual:
      return figure == bound_;
  }
  return false;
}

std::string Condition::Describe(const LoadResult& result) const {
  const double figure = FigureOf(result);
  switch (unit_) {
    case Unit::kSeconds:
      return absl::StrCat(figure_, " is ", output::TimeText(figure));
    case Unit::kPerSecond:
      return absl::StrFormat("%s is %.4g/s", figure_, figure);
    case Unit::kCount:
      return absl::StrFormat("%s is %.0f", figure_, figure);
    case Unit::kPercent:
      return absl::StrFormat("%s is %.3g%%", figure_, figure);
  }
  return figure_;
}

absl::StatusOr<std::vector<Condition>> ParseObjectives(std::string_view text) {
  std::vector<Condition> objectives;
  for (absl::string_view one : absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
    absl::StatusOr<Condition> objective =
        Condition::Parse(std::string_view(one.data(), one.size()));
    if (!objective.ok()) return objective.status();
    using Comparison = Condition::Comparison;
    const bool is_rate = objective->unit_ == Condition::Unit::kPerSecond;
    Comparison& comparison = objective->comparison_;
    if (comparison == Comparison::kEqual) {
      comparison = is_rate ? Comparison::kAtLeast : Comparison::kAtMost;
    }
    const bool is_lower = comparison == Comparison::kMore || comparison == Comparison::kAtLeast;
    if (is_lower != is_rate) {
      return Wrong(objective->text_, is_rate
                                         ? "is to be kept, so rate has a lower bound: rate=1000"
                                         : absl::StrCat("is to be kept, so ", objective->figure_,
                                                        " has an upper bound, with = or <"));
    }
    objectives.push_back(*std::move(objective));
  }
  return objectives;
}

}  // namespace softlookup::loadtest
