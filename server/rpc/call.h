#ifndef SOFTLOOKUP_SERVER_RPC_CALL_H_
#define SOFTLOOKUP_SERVER_RPC_CALL_H_

#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/method.h"
#include "server/observability/call_observer.h"
#include "server/observability/engine_log.h"
#include "server/observability/line_limiter.h"
#include "server/rpc/call_auditor.h"
#include "server/rpc/call_counter.h"
#include "server/rpc/call_gate.h"
#include "server/rpc/call_limiters.h"
#include "server/rpc/call_reporter.h"
#include "server/rpc/message_receiver.h"
#include "server/rpc/routed_metadata.h"
#include "server/rpc/rpc.h"
#include "server/rpc/stream_registry.h"
#include "server/security/audit_log.h"
#include "server/security/authenticator.h"

namespace softlookup::server {

// What the calls of a server use. All members must outlive the calls.
struct CallDependencies {
  CallCounter& calls;
  StreamRegistry& streams;
  CallLimiters& limiters;
  const Authenticator& authenticator;
  CallObserver& observer;  // Is notified of every call.
  EngineLog& engine_log;
  AuditLog* audit;        // Null: there is none.
  LineLimiter& refusals;  // Limits the audit lines about refused callers, of all calls together.
};

// One call in progress, as the code that answers it sees it. gate() checks its caller, Receive()
// parses its messages, reporter() reports its answer, auditor() counts its changes for the audit
// line, and rpc() carries its messages. The call counts as in progress for the lifetime of this
// object. Thread-safe, as long as the rules of these members are kept.
class Call {
 public:
  // `dependencies` and `spec` must outlive this.
  Call(const CallDependencies& dependencies, Rpc& rpc, const MethodSpec& spec, CallOrigin origin);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  CallGate& gate() { return gate_; }
  CallAuditor& auditor() { return auditor_; }
  CallReporter& reporter() { return reporter_; }
  Rpc& rpc() const { return rpc_; }
  const MethodSpec& spec() const { return spec_; }
  StreamRegistry& streams() const { return dependencies_.streams; }
  CallLimiters& limiters() const { return dependencies_.limiters; }

  // Parses a message of the call's caller. See MessageReceiver::Receive().
  absl::Status Receive(grpc::ByteBuffer& bytes, google::protobuf::Message& message,
                       MessageCharge& charge) const {
    return limiters().messages.Receive(
        bytes, {.identity = gate_.identity(), .budget = gate_.request_bytes()}, message, charge);
  }

  // Charges the bytes of a message that is passed on as it is. See MessageReceiver::Hold().
  absl::Status Hold(const grpc::ByteBuffer& bytes, MessageCharge& charge) const {
    return limiters().messages.Hold(
        bytes, {.identity = gate_.identity(), .budget = gate_.request_bytes()}, charge);
  }

  // Writes a line of the server log about a store that the call has to do with: `fields`, and who
  // has called.
  void LogStore(StoreEvent event, nlohmann::ordered_json fields) const;
  // Counts a restore that the call has tried to make. `is_ok`: it has succeeded.
  void CountRestore(bool is_ok) const { dependencies_.observer.OnRestore(is_ok); }

  // The name of the caller's identity; empty if there is none.
  const std::string& identity() const { return gate_.identity(); }
  // The deadline that the client set; infinite if none.
  absl::Time deadline() const;
  // The longest time that a lookup may wait for `min_revision`: the server's limit, or that of the
  // router if it is shorter. `routed_max` is the router's if it tells none. Infinite if
  // `min_revision` is 0.
  absl::Duration RevisionWaitMax(std::uint64_t min_revision,
                                 absl::Duration routed_max = absl::InfiniteDuration()) const;
  CallOrigin origin() const { return origin_; }
  // The name under which the caller takes turns with others at the workers: its identity, or its
  // address if it has no identity.
  absl::string_view turn() const {
    return gate_.identity().empty() ? gate_.peer() : gate_.identity();
  }

 private:
  const CallDependencies& dependencies_;
  Rpc& rpc_;
  const MethodSpec& spec_;
  const CallOrigin origin_;
  CallGate gate_;
  CallAuditor auditor_;
  CallReporter reporter_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_CALL_H_
