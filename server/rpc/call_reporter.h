#ifndef SOFTLOOKUP_SERVER_RPC_CALL_REPORTER_H_
#define SOFTLOOKUP_SERVER_RPC_CALL_REPORTER_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#include "absl/status/status.h"
#include "server/observability/call_observer.h"
#include "server/rpc/call_gate.h"
#include "server/rpc/method.h"
#include "server/rpc/rpc.h"
#include "server/security/audit_log.h"

namespace softlookup::server {

// Reports how a call and its messages are answered, to the observer and the audit log. The code
// that answers a call reports the answer here before it passes the answer to gRPC. Thread-safe.
class CallReporter {
 public:
  // The call begins now. `gate` is the call's. `audit` may be null: there is no audit log. All
  // arguments must outlive this.
  CallReporter(CallObserver& observer, AuditLog* audit, const CallGate& gate, Rpc& rpc,
               const MethodSpec& spec)
      : observer_(observer), audit_(audit), gate_(gate), rpc_(rpc), spec_(spec) {}

  // Reports `status` to the observer as the answer to the whole call, and writes the audit line.
  // Returns the status to send to the client.
  grpc::Status Answer(const absl::Status& status);
  // As Answer(), for a lookup.
  grpc::Status AnswerLookup(const absl::Status& status, const LookupFacts& facts);
  // Like Answer(), for a stream that the server ends with `status`. `status` answers none of the
  // stream's messages. So the observer does not count it as an answer, but at most as a rejection.
  grpc::Status CutStream(const absl::Status& status);
  // As Answer(), for a stream whose messages were each reported before. Reports nothing to the
  // observer.
  grpc::Status EndStream(const absl::Status& status);

  // Reports `status` to the observer as the answer to one message of a stream. The stream began to
  // handle the message at `begin`.
  void AnswerMessage(SteadyTime begin, const absl::Status& status) {
    observer_.OnAnswer(Info(), begin, status);
  }
  // As AnswerMessage(), for a lookup.
  void AnswerLookupMessage(SteadyTime begin, const absl::Status& status, const LookupFacts& facts) {
    observer_.OnLookup(Info(), begin, status, facts);
  }

  // Writes an audit line about the call, or about one refused message of a stream, if there is an
  // audit log. Calls of methods without MethodSpec::is_audited have a line only for a failed login
  // or a denial. If there are too many failed logins and denials in a second, the rest of their
  // lines are left out, whatever the method.
  void Audit(const absl::Status& status);
  // For the audit line: counts one applied message that changed `rows` rows.
  void CountChange(std::uint64_t rows) {
    changes_.fetch_add(1, std::memory_order_relaxed);
    changed_rows_.fetch_add(rows, std::memory_order_relaxed);
  }

 private:
  CallInfo Info() const {
    return {.method = spec_.method, .context = rpc_.context(), .identity = gate_.identity()};
  }

  CallObserver& observer_;
  AuditLog* const audit_;
  const CallGate& gate_;
  Rpc& rpc_;
  const MethodSpec& spec_;
  const SteadyTime begin_ = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> changes_{0};
  std::atomic<std::uint64_t> changed_rows_{0};
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_CALL_REPORTER_H_
