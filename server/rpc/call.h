#ifndef SOFTLOOKUP_SERVER_RPC_CALL_H_
#define SOFTLOOKUP_SERVER_RPC_CALL_H_

#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/limits/connection_calls.h"
#include "server/limits/request_bytes.h"
#include "server/observability/call_observer.h"
#include "server/rpc/call_limiters.h"
#include "server/rpc/call_tracker.h"
#include "server/rpc/method.h"
#include "server/rpc/rpc.h"
#include "server/security/audit_log.h"
#include "server/security/authenticator.h"

namespace softlookup::server {

// The bytes of one request, charged to the budget of all requests and to that of its caller. The
// destructor returns them.
struct MessageCharge {
  RequestCharge of_all;
  RequestCharge of_caller;
};

// What the calls of a server use. All members must outlive the calls.
struct CallDependencies {
  CallTracker& tracker;
  CallLimiters& limiters;
  const Authenticator& authenticator;
  CallObserver& observer;  // Is notified of every call.
  AuditLog* audit;         // Gets lines about changes, failed logins and denials. Null: none.
};

// A call in progress, for the lifetime of this object. A call passes these checks before the engine
// sees it. Enter() is only for messages that name a store. The checks of the caller are left out if
// the server has no auth rules.
//   Admit(): The connection is within its limit of calls. Except for health checks: the server is
//     not stopping. The caller is known, has the method's role for some store (admin: for all), and
//     has requests left in its rate.
//   Receive(): The message's bytes fit the limits and budgets, and parse as the request's type.
//   Enter(): The caller has the role for that store. The store's tenant has requests and rows left
//     in its rates, and the caller has rows left.
// Each message of a stream of requests also passes AdmitNext().
//
// The code that answers a call reports the answer with Answer(), or with a method like it, before
// it passes the answer to gRPC. Thread-safe, except that Receive() and Enter() must be called for
// one message at a time.
class Call {
 public:
  // `dependencies` and `spec` must outlive this.
  Call(const CallDependencies& dependencies, Rpc& rpc, const MethodSpec& spec);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Returns SHUTTING_DOWN, TOO_MANY_CALLS, UNAUTHENTICATED, PERMISSION_DENIED or IDENTITY_LIMIT if
  // no message of the call may be read. Call this once, first.
  absl::Status Admit();

  // Checks `bytes`, then parses them into `message` and clears them. Errors: MESSAGE_TOO_LARGE,
  // LIMIT_EXCEEDED, REQUEST_BYTES, IDENTITY_LIMIT or MALFORMED_MESSAGE. `charge` must live as long
  // as anything refers to the message.
  absl::Status Receive(grpc::ByteBuffer& bytes, google::protobuf::Message& message,
                       MessageCharge& charge);

  // Checks that the caller may use `store`. Takes `rows` from the rates of the store's tenant and
  // of the caller, and one request from the tenant's. If the caller's rate refuses the rows, what
  // was taken from the tenant's rates stays taken. Errors: UNAUTHENTICATED, PERMISSION_DENIED,
  // TENANT_RATE or IDENTITY_LIMIT.
  absl::Status Enter(absl::string_view store, std::int64_t rows = 0);
  // Takes `rows` from the caller's rate, for a request that names no store. IDENTITY_LIMIT if
  // the rate refuses them.
  absl::Status TakeRows(std::int64_t rows);
  // Call this for each message of a stream of requests. Calls Recheck() if the auth rules have
  // changed, then takes one request from the caller's rate. Returns the error of either.
  absl::Status AdmitNext();

  // Identifies the caller again if the auth rules have changed. UNAUTHENTICATED or
  // PERMISSION_DENIED if it may no longer make this call.
  absl::Status Recheck();
  // The caller as it was last identified.
  Caller caller() const;
  // The name under which the caller takes turns with others at the workers: its identity, or its
  // connection if it has none.
  absl::string_view turn() const { return identity_.empty() ? connection_.peer() : identity_; }

  // Reports `status` to the observer as the answer to the whole call, and writes the audit line.
  // Returns the status to send to the client.
  grpc::Status Answer(const absl::Status& status);
  // As Answer(), for a lookup.
  grpc::Status AnswerLookup(const absl::Status& status, const LookupFacts& facts);
  // As Answer(), but reports that the server ends a stream with `status`, which answers none of the
  // stream's messages.
  grpc::Status CutStream(const absl::Status& status);
  // As Answer(), for a stream whose messages were each reported before. Reports nothing to the
  // observer.
  grpc::Status EndStream(const absl::Status& status);

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

  const MethodSpec& spec() const { return spec_; }
  CallTracker& tracker() const { return dependencies_.tracker; }
  CallLimiters& limiters() const { return dependencies_.limiters; }
  CallObserver& observer() const { return dependencies_.observer; }
  Rpc& rpc() const { return rpc_; }
  const CallInfo& info() const { return info_; }
  // The deadline that the client set; infinite if none.
  absl::Time deadline() const;

 private:
  // Identifies the caller again if the auth rules have changed. UNAUTHENTICATED if the new rules do
  // not know the caller's credentials.
  absl::Status FollowRules() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Keeps `store` in `store_`, and checks that the caller has the method's role for it.
  absl::Status CheckAccess(absl::string_view store);
  // Checks that the caller has the method's role for `store_`, by the auth rules as they are now.
  absl::Status CheckStoreAccess() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether `identity` has the method's role for some store, or for all stores if the role is
  // admin.
  bool MayCall(const Identity& identity) const;
  // The error of a caller without the method's role for `store`. An empty `store` stands for no
  // store in particular.
  absl::Status Denied(const Caller& caller, absl::string_view store) const;

  const CallDependencies& dependencies_;
  Rpc& rpc_;
  const MethodSpec& spec_;
  const ConnectionCalls::Call connection_;
  const SteadyTime begin_ = std::chrono::steady_clock::now();
  std::string identity_;  // The caller's name. Set by Admit().
  CallInfo info_;
  std::atomic<std::uint64_t> changes_{0};
  std::atomic<std::uint64_t> changed_rows_{0};

  mutable absl::Mutex mutex_;
  Caller caller_ ABSL_GUARDED_BY(mutex_);
  std::string store_ ABSL_GUARDED_BY(mutex_);  // The last store passed to Enter().
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_CALL_H_
