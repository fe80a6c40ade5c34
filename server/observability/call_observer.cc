#include "server/observability/call_observer.h"

namespace softlookup::server {

absl::Duration CallObserver::CountAnswer(const CallInfo& call, SteadyTimePoint begin,
                                         const absl::Status& status) {
  const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - begin;
  metrics_.CountAnswer(call.method, elapsed, status);
  const absl::Duration duration = absl::FromChrono(elapsed);
  log_.LogFailure(call, duration, status);
  return duration;
}

void CallObserver::OnLookup(const CallInfo& call, SteadyTimePoint begin, const absl::Status& status,
                            const LookupFacts& facts) {
  const absl::Duration duration = CountAnswer(call, begin, status);
  // The request itself asked to wait for a revision, so that wait does not make the lookup slow.
  const absl::Duration work = duration - facts.report.revision_wait;
  if (slow_lookup_ == absl::ZeroDuration() || work < slow_lookup_) return;
  metrics_.CountSlowLookup();
  log_.LogSlowLookup(call, duration, status, facts);
}

}  // namespace softlookup::server
