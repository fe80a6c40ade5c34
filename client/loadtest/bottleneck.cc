#include "client/loadtest/bottleneck.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/output/figure_text.h"

namespace softlookup::loadtest {
namespace {

// Returns the median of the timeline's 99th percentiles of lateness, in seconds. Takes the points
// from `begin` to `end`, which are fractions of the measurement window. 0 if no call was sent
// there.
double LatenessOf(const LoadResult& result, double begin, double end) {
  std::vector<double> lateness;
  for (const TimelinePoint& point : result.timeline) {
    const double middle = (point.begin_s + point.end_s) / 2;
    if (middle < begin * result.measured_s || middle > end * result.measured_s) continue;
    if (std::isfinite(point.lateness_p99_s)) lateness.push_back(point.lateness_p99_s);
  }
  if (lateness.empty()) return 0;
  std::sort(lateness.begin(), lateness.end());
  return lateness[lateness.size() / 2];
}

void CheckLateness(const LoadResult& result, std::vector<std::string>* reasons) {
  const double lateness = result.tally.lateness.Percentile(99);
  const double latency = result.tally.sum().latency.Percentile(99);
  const double most =
      std::isfinite(latency) ? std::max(kLatenessMin, kLatenessFraction * latency) : kLatenessMin;
  if (!(lateness > most)) return;
  reasons->push_back(absl::StrFormat(
      "this client sent 1 %% of the calls more than %.3g ms late; %.3g ms would be tolerable "
      "beside a 99th percentile of %.3g ms",
      1e3 * lateness, 1e3 * most, 1e3 * latency));
}

bool IsBusy(const ClientUse& use) {
  return use.cores_used >= kBusyFraction * use.cores || use.sender >= kBusyFraction;
}

void CheckGrowth(const LoadResult& result, std::vector<std::string>* reasons) {
  if (!IsBusy(result.client)) return;
  const double first = LatenessOf(result, 0, 1.0 / 3);
  const double last = LatenessOf(result, 2.0 / 3, 1);
  if (last < kLatenessMin || last < kLatenessGrowth * first) return;
  reasons->push_back(absl::StrFormat(
      "this client's CPU is saturated (%.2f of %.2g cores, its sender %.0f %% of one) and it sends "
      "later and later: 99th percentile %.3g ms at first, %.3g ms at last",
      result.client.cores_used, result.client.cores, 100 * result.client.sender, 1e3 * first,
      1e3 * last));
}

void CheckCores(const LoadResult& result, std::vector<std::string>* reasons) {
  if (result.client.cores_used < kBusyFraction * result.client.cores) return;
  reasons->push_back(absl::StrFormat("this client uses %.2f of the %.2g cores it may use",
                                     result.client.cores_used, result.client.cores));
}

}  // namespace

std::vector<std::string> BottleneckReasons(const LoadResult& result) {
  std::vector<std::string> reasons;
  if (result.options.rate.has_value()) {
    CheckLateness(result, &reasons);
    CheckGrowth(result, &reasons);
  } else {
    CheckCores(result, &reasons);
  }
  return reasons;
}

std::vector<std::string> InvalidReasons(const LoadResult& result) {
  std::vector<std::string> reasons = BottleneckReasons(result);
  const std::uint64_t overflow = result.tally.sum().overflow;
  if (overflow > 0) {
    reasons.push_back(
        absl::StrCat(output::CountText(overflow),
                     overflow == 1 ? " call that was due was not sent, "
                                   : " calls that were due were not sent, ",
                     output::CountText(result.options.in_flight_max),
                     " being in flight: the load was less than asked for, and figures without ",
                     overflow == 1 ? "this call" : "these calls", " are better than the truth"));
  }
  return reasons;
}

}  // namespace softlookup::loadtest
