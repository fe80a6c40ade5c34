#ifndef SOFTLOOKUP_SERVER_OBSERVABILITY_CALL_METRICS_H_
#define SOFTLOOKUP_SERVER_OBSERVABILITY_CALL_METRICS_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/histogram.h"
#include "server/base/method.h"

namespace softlookup::server {

// Counts calls and their answers for the metrics. Thread-safe; takes no lock.
class CallMetrics {
 public:
  // Number of gRPC's status codes, which are 0 to 16.
  static constexpr std::size_t kCodeCount = 17;
  // A copy of one method's counts.
  struct MethodCounts {
    std::array<std::uint64_t, kCodeCount> answers_by_code{};
    HistogramCounts duration;  // In nanoseconds.
    std::int64_t in_progress = 0;
  };
  struct ReasonCount {
    absl::string_view reason;
    std::uint64_t count = 0;
  };

  // Count a call that begins, or that is over.
  void OnBegin(Method method) { Of(method).in_progress.fetch_add(1, std::memory_order_relaxed); }
  void OnEnd(Method method) { Of(method).in_progress.fetch_sub(1, std::memory_order_relaxed); }

  // Counts an answer that came `duration` after its request. Calls CountRejection().
  void CountAnswer(Method method, std::chrono::nanoseconds duration, const absl::Status& status);
  // Counts `status` by its reason, if its code is RESOURCE_EXHAUSTED or UNAVAILABLE.
  void CountRejection(const absl::Status& status);
  // Counts the restore of a store, which has ended.
  void CountRestore(bool is_ok) {
    (is_ok ? ok_restore_count_ : failed_restore_count_).fetch_add(1, std::memory_order_relaxed);
  }
  void CountSlowLookup() { slow_lookup_count_.fetch_add(1, std::memory_order_relaxed); }

  MethodCounts CountsOf(Method method) const;
  // Returns the count of each known reason of rejections, also if it is 0. The last count is that
  // of all other reasons.
  std::vector<ReasonCount> RejectionCounts() const;
  std::uint64_t restore_count(bool is_ok) const {
    return is_ok ? ok_restore_count_ : failed_restore_count_;
  }
  std::uint64_t slow_lookup_count() const { return slow_lookup_count_; }

 private:
  static constexpr std::size_t kReasonsMax = 32;

  // Methods share no cache line, so that threads that count different ones do not slow each other.
  struct alignas(64) MethodCounters {
    std::array<std::atomic<std::uint64_t>, kCodeCount> answers_by_code{};
    Histogram duration{kTimeBounds};
    std::atomic<std::int64_t> in_progress{0};
  };

  MethodCounters& Of(Method method) { return methods_[static_cast<std::size_t>(method)]; }

  std::array<MethodCounters, kMethodCount> methods_;
  // By index in kRejectionReasons.
  std::array<std::atomic<std::uint64_t>, kReasonsMax> rejections_{};
  std::atomic<std::uint64_t> slow_lookup_count_{0};
  std::atomic<std::uint64_t> ok_restore_count_{0};
  std::atomic<std::uint64_t> failed_restore_count_{0};
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OBSERVABILITY_CALL_METRICS_H_
