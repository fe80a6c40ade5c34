#ifndef SOFTLOOKUP_SERVER_OBSERVABILITY_CALL_OBSERVER_H_
#define SOFTLOOKUP_SERVER_OBSERVABILITY_CALL_OBSERVER_H_

#include <grpcpp/grpcpp.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/histogram.h"
#include "server/observability/line_limiter.h"
#include "server/rpc/method.h"
#include "softlookup/engine.h"
#include "softlookup/v1/lookup.pb.h"

namespace softlookup::server {

using SteadyTime = std::chrono::steady_clock::time_point;

// What the observer needs to know about a call.
struct CallInfo {
  Method method;
  grpc::ServerContextBase& context;
  absl::string_view identity = {};  // The caller's name; empty if not identified.
};

// What is logged about a slow lookup.
struct LookupFacts {
  const v1::LookupRequest& request;
  absl::string_view store;               // Also set if a later request of a stream omits it.
  const LookupResult* result = nullptr;  // Null if the lookup failed.
  const LookupReport& report;
};

// Is notified of every call of a known method. Counts calls and answers for the metrics. Logs slow
// lookups, and failures that are the server's fault. Thread-safe; counting takes no lock.
class CallObserver {
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

  // A lookup that takes `slow_lookup` or longer, not counting the wait for its revision, is counted
  // and logged as slow. 0: no lookup is slow.
  explicit CallObserver(absl::Duration slow_lookup) : slow_lookup_(slow_lookup) {}
  // Logs how many lines of each kind were left out since the last line of that kind.
  ~CallObserver();

  // Count a call that begins, or that is over.
  void OnBegin(Method method) { Of(method).in_progress.fetch_add(1, std::memory_order_relaxed); }
  void OnEnd(Method method) { Of(method).in_progress.fetch_sub(1, std::memory_order_relaxed); }

  // Counts the answer `status` to a call, or to a message of a stream, that came at `begin`. Call
  // this before the answer is passed to gRPC.
  void OnAnswer(const CallInfo& call, SteadyTime begin, const absl::Status& status) {
    CountAnswer(call, begin, status);
  }
  // Like OnAnswer(), for a lookup. Also counts and logs the lookup if it was slow.
  void OnLookup(const CallInfo& call, SteadyTime begin, const absl::Status& status,
                const LookupFacts& facts);
  // Call this before the server ends a stream with `status`, if `status` answers none of its
  // messages. Counts only a rejection, no answer.
  void OnStreamCut(const absl::Status& status) { CountRejection(status); }

  MethodCounts CountsOf(Method method) const;
  // Returns the count of each known reason of rejections, also if it is 0. The last count is that
  // of all other reasons.
  std::vector<ReasonCount> RejectionCounts() const;
  std::uint64_t slow_lookup_count() const { return slow_lookup_count_; }

 private:
  static constexpr std::size_t kReasonsMax = 32;
  static constexpr std::int64_t kLinesPerSecondMax = 10;  // For each kind of line.

  // Methods share no cache line, so that threads that count different ones do not slow each other.
  struct alignas(64) MethodCounters {
    std::array<std::atomic<std::uint64_t>, kCodeCount> answers_by_code{};
    Histogram duration{kTimeBounds};
    std::atomic<std::int64_t> in_progress{0};
  };

  MethodCounters& Of(Method method) { return methods_[static_cast<std::size_t>(method)]; }
  // Counts the answer, and logs it if the server is to blame. Returns the time since `begin`.
  std::chrono::nanoseconds CountAnswer(const CallInfo& call, SteadyTime begin,
                                       const absl::Status& status);
  // Counts `status` if its code is RESOURCE_EXHAUSTED or UNAVAILABLE.
  void CountRejection(const absl::Status& status);
  void LogFailure(const CallInfo& call, absl::Duration duration, const absl::Status& status);
  void LogSlowLookup(const CallInfo& call, absl::Duration duration, const absl::Status& status,
                     const LookupFacts& facts);

  const absl::Duration slow_lookup_;
  std::array<MethodCounters, kMethodCount> methods_;
  // By index in kRejectionReasons.
  std::array<std::atomic<std::uint64_t>, kReasonsMax> rejections_{};
  std::atomic<std::uint64_t> slow_lookup_count_{0};
  LineLimiter failure_lines_{kLinesPerSecondMax};
  LineLimiter slow_lookup_lines_{kLinesPerSecondMax};
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OBSERVABILITY_CALL_OBSERVER_H_
