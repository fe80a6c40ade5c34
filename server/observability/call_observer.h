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
#include "server/observability/log_limiter.h"
#include "server/rpc/method.h"
#include "softlookup/engine.h"
#include "softlookup/v1/lookup.pb.h"

namespace softlookup::server {

using SteadyTime = std::chrono::steady_clock::time_point;

// Whose call it is.
struct CallInfo {
  Method method;
  grpc::ServerContextBase& context;
  absl::string_view identity = {};  // Who calls, if the server asks.
};

// What a lookup was about, for the log.
struct LookupFacts {
  const v1::LookupRequest& request;
  absl::string_view store;               // The request may have left it out.
  const LookupResult* result = nullptr;  // Null if it failed.
  const LookupReport& report;
};

// Hears of every call: counts it for the metrics, and logs those that an operator should look at.
// Thread-safe; counting takes no lock.
class CallObserver {
 public:
  // By gRPC's code.
  static constexpr std::size_t kCodeCount = 17;
  // A method's figures, at one moment.
  struct MethodCounts {
    std::array<std::uint64_t, kCodeCount> answers_by_code{};
    HistogramCounts duration;  // Nanoseconds.
    std::int64_t in_progress = 0;
  };
  struct ReasonCount {
    absl::string_view reason;
    std::uint64_t count = 0;
  };

  // Lookups that take `slow_lookup` or longer are logged, unless it is 0.
  explicit CallObserver(absl::Duration slow_lookup) : slow_lookup_(slow_lookup) {}
  // Says what was left out of the log at the end.
  ~CallObserver();

  void OnBegin(Method method) { Of(method).in_progress.fetch_add(1, std::memory_order_relaxed); }
  void OnEnd(Method method) { Of(method).in_progress.fetch_sub(1, std::memory_order_relaxed); }

  // The call, or a message of it, that came at `begin` is about to be answered with `status`.
  void OnAnswer(const CallInfo& call, SteadyTime begin, const absl::Status& status) {
    CountAnswer(call, begin, status);
  }
  // The same of a lookup.
  void OnLookup(const CallInfo& call, SteadyTime begin, const absl::Status& status,
                const LookupFacts& facts);
  // A stream is about to end with `status` before its client has ended it. Its messages are
  // answered.
  void OnStreamCut(const absl::Status& status) { CountRejection(status); }

  MethodCounts CountsOf(Method method) const;
  // All reasons there are, then OTHER.
  std::vector<ReasonCount> RejectionCounts() const;
  std::uint64_t slow_lookup_count() const { return slow_lookup_count_; }

 private:
  static constexpr std::size_t kReasonsMax = 32;
  static constexpr std::int64_t kLinesPerSecondMax = 10;  // Of each kind.

  struct alignas(64) MethodCounters {
    std::array<std::atomic<std::uint64_t>, kCodeCount> answers_by_code{};
    Histogram duration{kTimeBounds};
    std::atomic<std::int64_t> in_progress{0};
  };

  MethodCounters& Of(Method method) { return methods_[static_cast<std::size_t>(method)]; }
  // Returns what the answer took.
  std::chrono::nanoseconds CountAnswer(const CallInfo& call, SteadyTime begin,
                                       const absl::Status& status);
  void CountRejection(const absl::Status& status);
  void LogFailure(const CallInfo& call, absl::Duration duration, const absl::Status& status);
  void LogSlowLookup(const CallInfo& call, absl::Duration duration, const absl::Status& status,
                     const LookupFacts& facts);

  const absl::Duration slow_lookup_;
  std::array<MethodCounters, kMethodCount> methods_;
  std::array<std::atomic<std::uint64_t>, kReasonsMax> rejections_{};
  std::atomic<std::uint64_t> slow_lookup_count_{0};
  LogLimiter failure_lines_{kLinesPerSecondMax};
  LogLimiter slow_lookup_lines_{kLinesPerSecondMax};
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OBSERVABILITY_CALL_OBSERVER_H_
