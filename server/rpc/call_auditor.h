#ifndef SOFTLOOKUP_SERVER_RPC_CALL_AUDITOR_H_
#define SOFTLOOKUP_SERVER_RPC_CALL_AUDITOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "server/base/method.h"
#include "server/observability/line_limiter.h"
#include "server/security/audit_log.h"

namespace softlookup::server {

// Maximum number of audit lines per second about failed logins and denials, of all calls together.
// A refused caller may retry without end.
inline constexpr std::int64_t kRefusalLinesPerSecondMax = 100;

// What an audit line says about who makes a call, from where, and for which store.
struct AuditSubject {
  std::string identity;  // The identity's name; empty if there is none.
  std::string peer;      // The client's address, as gRPC names it.
  std::string store;     // The store that the call last named; empty if there is none.
  std::string new_name;  // The name that the call is to give the store; empty if there is none.
  std::string trace_id;  // Empty if the caller sent none.
};

// Decides which audit lines a call leaves, and writes them. Thread-safe.
//
// A call of a method with MethodSpec::is_audited leaves a line when it ends. A call of another
// method leaves one only for a failed login or a denial. A denied message of a stream leaves its
// line when it is answered, and the stream that ends with this denial leaves no second one.
// `refusals` limits the lines about failed logins and denials, whatever the method.
class CallAuditor {
 public:
  // `log` is null if there is no audit log. All calls of a server share `log` and `refusals`.
  // `subject` is called for each line. What the arguments refer to must outlive this.
  CallAuditor(AuditLog* log, LineLimiter& refusals, const MethodSpec& spec,
              std::function<AuditSubject()> subject)
      : log_(log), refusals_(refusals), spec_(spec), subject_(std::move(subject)) {}

  // The whole call is answered with `status`.
  void Answer(const absl::Status& status);
  // One message of a stream is answered with `status`.
  void AnswerMessage(const absl::Status& status);
  // A stream ends with `status`: OK, or the answer to one of its messages. A denial leaves no line
  // here, because AnswerMessage() has written it.
  void EndStream(const absl::Status& status);

  // For the line of the whole call: the call has replaced the store that had the new name.
  void NoteReplacement() { replaced_.store(true, std::memory_order_relaxed); }
  // For the line of the whole call: the call is about `node`, a replica of the group. Call this
  // before the call is answered.
  void NoteNode(const std::string& node) { node_ = node; }
  // For the line of the whole call: counts one applied message that changed `rows` rows.
  void CountChange(std::uint64_t rows) {
    changes_.fetch_add(1, std::memory_order_relaxed);
    changed_rows_.fetch_add(rows, std::memory_order_relaxed);
  }

 private:
  void Write(const char* event, const absl::Status& status, std::int64_t left_out);

  AuditLog* const log_;
  LineLimiter& refusals_;
  const MethodSpec& spec_;
  const std::function<AuditSubject()> subject_;
  std::string node_;  // Empty: the call is about none.
  std::atomic<bool> replaced_{false};
  std::atomic<std::uint64_t> changes_{0};
  std::atomic<std::uint64_t> changed_rows_{0};
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_CALL_AUDITOR_H_
