#ifndef SOFTLOOKUP_SERVER_OBSERVABILITY_CALL_OBSERVER_H_
#define SOFTLOOKUP_SERVER_OBSERVABILITY_CALL_OBSERVER_H_

#include <chrono>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/method.h"
#include "server/observability/call_log.h"
#include "server/observability/call_metrics.h"

namespace softlookup::server {

using SteadyTimePoint = std::chrono::steady_clock::time_point;

// Is notified of every call of a known method, and passes that on to the metrics and the server
// log. Thread-safe.
class CallObserver {
 public:
  // A lookup that takes `slow_lookup` or longer, not counting the wait for its revision, is counted
  // and logged as slow. 0: no lookup is slow.
  explicit CallObserver(absl::Duration slow_lookup) : slow_lookup_(slow_lookup) {}

  // A call begins, or is over.
  void OnBegin(Method method) { metrics_.OnBegin(method); }
  void OnEnd(Method method) { metrics_.OnEnd(method); }

  // A call, or a message of a stream, came at `begin` and is answered with `status`. Call this
  // before the answer is passed to gRPC.
  void OnAnswer(const CallInfo& call, SteadyTimePoint begin, const absl::Status& status) {
    CountAnswer(call, begin, status);
  }
  // Like OnAnswer(), for a lookup. Also counts and logs the lookup if it was slow.
  void OnLookup(const CallInfo& call, SteadyTimePoint begin, const absl::Status& status,
                const LookupFacts& facts);
  // Call this before the server ends a stream with `status`, if `status` answers none of its
  // messages. Counts `status` as a rejection, if it is one, but not as an answer.
  void OnStreamCut(const absl::Status& status) { metrics_.CountRejection(status); }
  // The restore of a store has ended.
  void OnRestore(bool is_ok) { metrics_.CountRestore(is_ok); }

  const CallMetrics& metrics() const { return metrics_; }

 private:
  // Counts the answer, and logs it if the server is to blame. Returns the time since `begin`.
  absl::Duration CountAnswer(const CallInfo& call, SteadyTimePoint begin,
                             const absl::Status& status);

  const absl::Duration slow_lookup_;
  CallMetrics metrics_;
  CallLog log_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OBSERVABILITY_CALL_OBSERVER_H_
