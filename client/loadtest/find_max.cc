#include "client/loadtest/find_max.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/loadtest/bottleneck.h"
#include "client/loadtest/rate_search.h"
#include "client/output/figure_text.h"

namespace softlookup::loadtest {
namespace {

constexpr double kPrecision = 0.05;  // Of the rate found.
constexpr int kStepsMax = 24;
constexpr double kFirstRateMin = 1;  // Calls per second.

double FirstRate(const LoadOptions& options, const LoadTarget& target) {
  if (options.rate.has_value()) return *options.rate;
  LoadOptions probe = options;
  probe.ramp = probe.warm_up = absl::ZeroDuration();
  probe.duration = std::min(options.duration, absl::Seconds(1));
  return std::max(kFirstRateMin, RunLoad(probe, target).rate() / 2);
}

// Returns FindMaxResult::limited_by_client.
bool IsLimitedByClient(const FindMaxResult& result) {
  const double best = result.best.has_value() ? result.steps[*result.best].rate : 0;
  const FindMaxStep* next = nullptr;
  for (const FindMaxStep& step : result.steps) {
    if (step.held || step.rate < best) continue;
    if (next == nullptr || step.rate < next->rate) next = &step;
  }
  return next != nullptr && next->limited_by_client;
}

// Whether the client may be the reason why the rate did not hold. Overflow alone counts only if the
// calls that were sent ended OK and keep the objectives. Otherwise the server missed the objectives
// even without the unsent calls.
bool MayBeLimitedByClient(const LoadResult& result, const std::vector<Condition>& objectives) {
  if (!BottleneckReasons(result).empty()) return true;
  const Tally::OfMethod calls = result.tally.sum();
  return calls.overflow > 0 && calls.errors() == 0 && calls.rejected == 0 &&
         std::all_of(objectives.begin(), objectives.end(),
                     [&](const Condition& objective) { return objective.Holds(result); });
}

}  // namespace

std::string WhyNotHeld(const LoadResult& result, const std::vector<Condition>& objectives) {
  const Tally::OfMethod calls = result.tally.sum();
  if (calls.errors() > 0) return output::Counted(calls.errors(), "error");
  if (calls.rejected > 0) return absl::StrCat(calls.rejected, " rejected");
  if (calls.overflow > 0) return absl::StrCat(calls.overflow, " not sent, too many in flight");
  for (const Condition& objective : objectives) {
    if (objective.Holds(result)) continue;
    return absl::StrCat(objective.Describe(result),
                        result.invalid.empty() ? "" : ", but the client was late");
  }
  return "";
}

FindMaxResult FindMax(const LoadOptions& options, const LoadTarget& target,
                      const std::vector<Condition>& objectives,
                      const std::function<void(const FindMaxStep&)>& tried) {
  FindMaxResult result;
  RateSearch search(FirstRate(options, target), kPrecision, kStepsMax);
  for (int number = 0;; ++number) {
    if (target.interrupted != nullptr && *target.interrupted) {
      result.interrupted = true;
      break;
    }
    const std::optional<double> rate = search.Next();
    if (!rate.has_value()) break;
    LoadOptions step_options = options;
    step_options.rate = rate;
    LoadTarget step_target = target;
    step_target.writer_prefix = absl::StrCat(target.writer_prefix, number, "-");
    FindMaxStep step{.rate = *rate, .result = RunLoad(step_options, step_target)};
    if (step.result.interrupted) {
      result.interrupted = true;
      break;
    }
    step.why = WhyNotHeld(step.result, objectives);
    step.held = step.why.empty();
    step.limited_by_client = !step.held && MayBeLimitedByClient(step.result, objectives);
    search.Tried(step.held);
    if (tried) tried(step);
    result.steps.push_back(std::move(step));
    if (result.steps.back().held && search.held() == *rate) result.best = result.steps.size() - 1;
  }
  result.limited_by_client = IsLimitedByClient(result);
  return result;
}

}  // namespace softlookup::loadtest
