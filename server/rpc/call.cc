#include "server/rpc/call.h"

#include <grpc/support/time.h>

#include <algorithm>
#include <string>
#include <utility>

#include "server/observability/trace_context.h"

namespace softlookup::server {

Call::Call(const CallDependencies& dependencies, Rpc& rpc, const MethodSpec& spec,
           CallOrigin origin)
    : dependencies_(dependencies),
      rpc_(rpc),
      spec_(spec),
      origin_(origin),
      gate_(dependencies.streams, dependencies.limiters, dependencies.authenticator, rpc, spec,
            origin),
      auditor_(dependencies.audit, dependencies.refusals, spec,
               [this] {
                 return AuditSubject{.identity = gate_.identity(),
                                     .peer = gate_.peer(),
                                     .store = gate_.store(),
                                     .new_name = gate_.new_name(),
                                     .trace_id = std::string(TraceIdOf(rpc_.context()))};
               }),
      reporter_(dependencies.observer, auditor_, gate_, rpc, spec) {
  dependencies_.calls.OnBegin();
  dependencies_.observer.OnBegin(spec_.method);
}

Call::~Call() {
  dependencies_.observer.OnEnd(spec_.method);
  dependencies_.calls.OnEnd();
}

void Call::LogStore(StoreEvent event, nlohmann::ordered_json fields) const {
  if (!gate_.identity().empty()) fields["identity"] = gate_.identity();
  fields["peer"] = gate_.peer();
  dependencies_.engine_log.Write(event, std::move(fields));
}

absl::Duration Call::RevisionWaitMax(std::uint64_t min_revision, absl::Duration routed_max) const {
  if (min_revision == 0) return absl::InfiniteDuration();
  const absl::Duration wait_max = limiters().limits.revision_wait_max;
  if (origin_ == CallOrigin::kClient) return wait_max;
  return std::min(wait_max, RoutedRevisionWaitOf(rpc_.context()).value_or(routed_max));
}

absl::Time Call::deadline() const {
  // Converts seconds and nanoseconds one by one: the longest deadline that a client may set, in
  // nanoseconds, does not fit in 64 bits.
  const gpr_timespec deadline =
      gpr_convert_clock_type(rpc_.context().raw_deadline(), GPR_CLOCK_REALTIME);
  if (gpr_time_cmp(deadline, gpr_inf_future(GPR_CLOCK_REALTIME)) == 0)
    return absl::InfiniteFuture();
  return absl::FromUnixSeconds(deadline.tv_sec) + absl::Nanoseconds(deadline.tv_nsec);
}

}  // namespace softlookup::server
