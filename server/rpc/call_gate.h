#ifndef SOFTLOOKUP_SERVER_RPC_CALL_GATE_H_
#define SOFTLOOKUP_SERVER_RPC_CALL_GATE_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/base/method.h"
#include "server/limits/connection_calls.h"
#include "server/limits/request_bytes.h"
#include "server/rpc/call_limiters.h"
#include "server/rpc/routed_metadata.h"
#include "server/rpc/rpc.h"
#include "server/rpc/stream_registry.h"
#include "server/security/authenticator.h"

namespace softlookup::server {

// Lets the caller of one call in, or refuses it, by its rights and its rates. The checks come in
// this order:
//   Admit(): The connection is within its limit of calls. The server is not stopping. The caller is
//     known, has the method's role for some store (admin: for all), and has requests left in its
//     rate. Health checks need only pass the first of these checks.
//   AdmitNext(), for each message of a stream of requests: If the auth rules have changed, the
//     caller may still make the call. The caller has requests left.
//   Enter(), once a message is parsed that names a store: The caller has the role for that store.
//     The store's tenant has requests and rows left in its rates, and the caller has rows left.
//     EnterRename() checks the role and the tenants' requests for a message with two names.
// If the server has no auth rules, callers are not checked, but tenants' rates are.
//
// A router's connection carries the calls of many clients, and has no limit of its own. The caller
// of such a call is the identity that the router names.
//
// Thread-safe, except that Enter() and EnterRename() must be called for one message at a time.
class CallGate {
 public:
  // Counts the call of a client as in progress on its connection for the lifetime of this object.
  // All arguments must outlive this.
  CallGate(const StreamRegistry& streams, CallLimiters& limiters,
           const Authenticator& authenticator, const Rpc& rpc, const MethodSpec& spec,
           CallOrigin origin);

  // Returns SHUTTING_DOWN, TOO_MANY_CALLS, UNAUTHENTICATED, PERMISSION_DENIED or IDENTITY_LIMIT if
  // no message of the call may be read. Call this once, first.
  absl::Status Admit();

  // Checks that the caller may use `store`. Takes `rows` (of an append, or the queries of a lookup)
  // from the rates of the store's tenant and of the caller, and one request from the tenant's. If
  // the caller's rate refuses the rows, what was taken from the tenant's rates stays taken. Errors:
  // UNAUTHENTICATED, PERMISSION_DENIED, TENANT_RATE or IDENTITY_LIMIT.
  absl::Status Enter(absl::string_view store, std::int64_t rows = 0);
  // Takes one request and `rows` from the rates of the tenant of store() and of the caller, for a
  // call whose method does not count as a request. Call this after Enter().
  absl::Status TakeRequest(std::int64_t rows);
  // As Enter(), for a call that renames `store` to `new_name`, or restores it as `new_name`: the
  // caller needs the role for both.
  // Takes one request from the rate of each name's tenant, or only one if both names have the same
  // tenant. If the second tenant's rate refuses, what was taken from the first stays taken.
  absl::Status EnterRename(absl::string_view store, absl::string_view new_name);
  // Keeps names for store() and new_name(), without a check: of a call that Admit() has denied, or
  // that a router passes on. `new_name` may be empty.
  void KeepNames(absl::string_view store, absl::string_view new_name);
  // Takes `rows` from the caller's rate, for a request that names no store. IDENTITY_LIMIT if
  // the rate refuses them.
  absl::Status TakeRows(std::int64_t rows);
  // Call this for each message of a stream of requests. Calls Recheck() if the auth rules have
  // changed, then takes one request from the caller's rate. Returns the error of the step that
  // fails.
  absl::Status AdmitNext();

  // Identifies the caller again if the auth rules have changed. UNAUTHENTICATED or
  // PERMISSION_DENIED if it may no longer make this call.
  absl::Status Recheck();

  // The caller as it was last identified.
  Caller caller() const;
  // The budget of the caller's bytes in flight; null if the caller has no identity.
  std::shared_ptr<RequestBytes> request_bytes() const;
  // The name of the caller that Admit() identified; empty if there is none.
  const std::string& identity() const { return identity_; }
  // The address of the client, as gRPC names it: the connection's other end or, if a router tells
  // one, what the router tells.
  const std::string& peer() const { return peer_; }
  // The last store passed to Enter(), EnterRename() or KeepNames(); empty if there is none.
  std::string store() const;
  // The new name passed to EnterRename() or KeepNames(); empty if there is none.
  std::string new_name() const;

 private:
  // Identifies the caller again if the auth rules have changed. UNAUTHENTICATED if the new rules do
  // not know the caller's credentials.
  absl::Status FollowRules() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Keeps `store` in `store_` and `new_name` in `new_name_`. Checks that the caller has the
  // method's role for them.
  absl::Status CheckAccess(absl::string_view store, std::optional<absl::string_view> new_name);
  // Checks that the caller has the method's role for `store_` and `new_name_`, by the auth rules as
  // they are now.
  absl::Status CheckStoreAccess() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether `identity` has the method's role for some store, or for all stores if the role is
  // admin.
  bool MayCall(const Identity& identity) const;
  // The error of a caller without the method's role for `store`. An empty `store` stands for no
  // store in particular.
  absl::Status Denied(const Caller& caller, absl::string_view store) const;

  const StreamRegistry& streams_;
  CallLimiters& limiters_;
  const Authenticator& authenticator_;
  const Rpc& rpc_;
  const MethodSpec& spec_;
  const CallOrigin origin_;
  const std::string peer_;
  std::optional<ConnectionCalls::Call> connection_;  // nullopt for a router's call.
  std::string identity_;                             // Set by Admit().

  mutable absl::Mutex mutex_;
  Caller caller_ ABSL_GUARDED_BY(mutex_);
  std::string store_ ABSL_GUARDED_BY(mutex_);                    // As store() returns it.
  std::optional<std::string> new_name_ ABSL_GUARDED_BY(mutex_);  // Nullopt: there is none.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_CALL_GATE_H_
