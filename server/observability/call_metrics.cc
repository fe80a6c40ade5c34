#include "server/observability/call_metrics.h"

#include <algorithm>

#include "core/base/error.h"

namespace softlookup::server {
namespace {

// Reasons of RESOURCE_EXHAUSTED and UNAVAILABLE. The metrics list each of them, even if its count
// is 0. The last stands for all other reasons.
constexpr std::array kRejectionReasons = {reasons::kQueueFull.name,
                                          reasons::kMemoryLimit.name,
                                          reasons::kMessageTooLarge.name,
                                          reasons::kAnswerTooLarge.name,
                                          reasons::kTooManyStores.name,
                                          reasons::kTooManyWriters.name,
                                          reasons::kStorageFailed.name,
                                          reasons::kBackupInProgress.name,
                                          reasons::kLoading.name,
                                          reasons::kTenantRate.name,
                                          reasons::kShuttingDown.name,
                                          reasons::kIdentityLimit.name,
                                          reasons::kRequestBytes.name,
                                          reasons::kTooManyCalls.name,
                                          reasons::kCompactionInProgress.name,
                                          reasons::kRestoreInProgress.name,
                                          reasons::kClusterUnavailable.name,
                                          reasons::kTooManyTenants.name,
                                          absl::string_view("OTHER")};

}  // namespace

void CallMetrics::CountAnswer(Method method, std::chrono::nanoseconds duration,
                              const absl::Status& status) {
  MethodCounters& counters = Of(method);
  const auto code = std::min(static_cast<std::size_t>(status.code()), kCodeCount - 1);
  counters.answers_by_code[code].fetch_add(1, std::memory_order_relaxed);
  counters.duration.Observe(duration);
  CountRejection(status);
}

void CallMetrics::CountRejection(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status) && !absl::IsUnavailable(status)) return;
  const auto last = kRejectionReasons.end() - 1;
  const auto found = std::find(kRejectionReasons.begin(), last, ReasonOf(status));
  static_assert(kRejectionReasons.size() <= kReasonsMax);
  rejections_[static_cast<std::size_t>(found - kRejectionReasons.begin())].fetch_add(
      1, std::memory_order_relaxed);
}

CallMetrics::MethodCounts CallMetrics::CountsOf(Method method) const {
  const MethodCounters& counters = methods_[static_cast<std::size_t>(method)];
  MethodCounts counts{.duration = counters.duration.counts(), .in_progress = counters.in_progress};
  for (std::size_t i = 0; i < kCodeCount; ++i) {
    counts.answers_by_code[i] = counters.answers_by_code[i];
  }
  return counts;
}

std::vector<CallMetrics::ReasonCount> CallMetrics::RejectionCounts() const {
  std::vector<ReasonCount> counts;
  for (std::size_t i = 0; i < kRejectionReasons.size(); ++i) {
    counts.push_back({.reason = kRejectionReasons[i], .count = rejections_[i]});
  }
  return counts;
}

}  // namespace softlookup::server
