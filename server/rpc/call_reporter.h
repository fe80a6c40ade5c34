#ifndef SOFTLOOKUP_SERVER_RPC_CALL_REPORTER_H_
#define SOFTLOOKUP_SERVER_RPC_CALL_REPORTER_H_

#include <grpcpp/grpcpp.h>

#include <chrono>

#include "absl/status/status.h"
#include "server/base/method.h"
#include "server/observability/call_observer.h"
#include "server/rpc/call_auditor.h"
#include "server/rpc/call_gate.h"
#include "server/rpc/rpc.h"

namespace softlookup::server {

// Tells the observer and the auditor how a call and its messages are answered. The code that
// answers a call reports the answer here before it passes the answer to gRPC. Thread-safe.
class CallReporter {
 public:
  // The call begins now. `gate` and `auditor` are the call's. All arguments must outlive this.
  CallReporter(CallObserver& observer, CallAuditor& auditor, const CallGate& gate, Rpc& rpc,
               const MethodSpec& spec)
      : observer_(observer), auditor_(auditor), gate_(gate), rpc_(rpc), spec_(spec) {}

  // Reports `status` as the answer to the whole call. Returns the status to send to the client.
  grpc::Status Answer(const absl::Status& status);
  // As Answer(), for a lookup.
  grpc::Status AnswerLookup(const absl::Status& status, const LookupFacts& facts);
  // Like Answer(), for a stream that the server ends with `status`. `status` answers none of the
  // stream's messages. So the observer does not count it as an answer, but at most as a rejection.
  grpc::Status CutStream(const absl::Status& status);
  // Reports to the auditor alone that a stream ends with `status`: OK, or the answer to one of its
  // messages. Each message was reported before. Returns the status to send to the client.
  grpc::Status EndStream(const absl::Status& status);

  // Reports `status` as the answer to one message of a stream. The stream began to handle the
  // message at `begin`.
  void AnswerMessage(SteadyTimePoint begin, const absl::Status& status);
  // As AnswerMessage(), for a lookup.
  void AnswerLookupMessage(SteadyTimePoint begin, const absl::Status& status,
                           const LookupFacts& facts);

 private:
  CallInfo Info() const {
    return {.method = spec_.method,
            .context = rpc_.context(),
            .peer = gate_.peer(),
            .identity = gate_.identity()};
  }
  grpc::Status ToSend(const absl::Status& status) const;

  CallObserver& observer_;
  CallAuditor& auditor_;
  const CallGate& gate_;
  Rpc& rpc_;
  const MethodSpec& spec_;
  const SteadyTimePoint begin_ = std::chrono::steady_clock::now();
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_CALL_REPORTER_H_
