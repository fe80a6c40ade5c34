#include "server/rpc/call_gate.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/limits.h"
#include "core/base/status_macros.h"
#include "core/base/steady_time.h"
#include "server/rpc/status.h"

namespace softlookup::server {
namespace {

Role RoleOf(Access access) {
  switch (access) {
    case Access::kManage:
      return Role::kManage;
    case Access::kWrite:
      return Role::kWrite;
    case Access::kAdmin:
      return Role::kAdmin;
    default:
      return Role::kRead;
  }
}

// Sets `kept` to the name `store`, cut after kNameLengthMax + 1 bytes, so that `kept` stays short.
// A name that was cut is still too long to be a store's.
void Keep(absl::string_view store, std::string& kept) {
  store = store.substr(0, kNameLengthMax + 1);
  kept.assign(store.data(), store.size());
}

std::string PeerOf(const Rpc& rpc, CallOrigin origin) {
  if (origin == CallOrigin::kClient) return rpc.peer();
  return RoutedClientOf(rpc.context()).value_or(rpc.peer());
}

}  // namespace

CallGate::CallGate(const StreamRegistry& streams, CallLimiters& limiters,
                   const Authenticator& authenticator, const Rpc& rpc, const MethodSpec& spec,
                   CallOrigin origin)
    : streams_(streams),
      limiters_(limiters),
      authenticator_(authenticator),
      rpc_(rpc),
      spec_(spec),
      origin_(origin),
      peer_(PeerOf(rpc, origin)) {
  if (origin == CallOrigin::kClient) connection_.emplace(limiters.connections, rpc.peer());
}

absl::Status CallGate::Admit() {
  if (connection_.has_value() && connection_->is_over_limit()) {
    const std::string limit = absl::StrCat(limiters_.connections.calls_max());
    return MakeError(reasons::kTooManyCalls,
                     absl::StrCat("The connection has ", limit, " calls in progress already"),
                     {{"limit", limit}});
  }
  if (spec_.access == Access::kNone) return absl::OkStatus();
  if (streams_.is_draining()) return ShuttingDown();
  Credentials credentials;
  if (origin_ == CallOrigin::kRouter) {
    credentials = RoutedCredentialsOf(rpc_.context());
  } else {
    if (!authenticator_.requires_identity()) return absl::OkStatus();
    SOFTLOOKUP_ASSIGN_OR_RETURN(credentials, CredentialsOf(rpc_.context()));
  }
  absl::MutexLock lock(&mutex_);
  SOFTLOOKUP_ASSIGN_OR_RETURN(caller_, authenticator_.Identify(std::move(credentials)));
  if (caller_.identity == nullptr) return absl::OkStatus();
  identity_ = caller_.name();
  if (!MayCall(*caller_.identity)) return Denied(caller_, "");
  if (!spec_.counts_as_request) return absl::OkStatus();
  return caller_.usage->Take(*caller_.identity, 1, 0, SteadyNow());
}

absl::Status CallGate::AdmitNext() {
  if (authenticator_.HasChangedSince(caller())) SOFTLOOKUP_RETURN_IF_ERROR(Recheck());
  absl::MutexLock lock(&mutex_);
  if (caller_.identity == nullptr) return absl::OkStatus();
  return caller_.usage->Take(*caller_.identity, 1, 0, SteadyNow());
}

absl::Status CallGate::Enter(absl::string_view store, std::int64_t rows) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckAccess(store, std::nullopt));
  if (spec_.counts_as_request) SOFTLOOKUP_RETURN_IF_ERROR(limiters_.tenants.Take(store, rows));
  return TakeRows(rows);
}

absl::Status CallGate::TakeRequest(std::int64_t rows) {
  SOFTLOOKUP_RETURN_IF_ERROR(limiters_.tenants.Take(store(), rows));
  absl::MutexLock lock(&mutex_);
  if (caller_.identity == nullptr) return absl::OkStatus();
  return caller_.usage->Take(*caller_.identity, 1, rows, SteadyNow());
}

absl::Status CallGate::EnterRename(absl::string_view store, absl::string_view new_name) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckAccess(store, new_name));
  SOFTLOOKUP_RETURN_IF_ERROR(limiters_.tenants.Take(store, /*rows=*/0));
  if (TenantLimits::TenantOf(store) == TenantLimits::TenantOf(new_name)) return absl::OkStatus();
  return limiters_.tenants.Take(new_name, /*rows=*/0);
}

void CallGate::KeepNames(absl::string_view store, absl::string_view new_name) {
  absl::MutexLock lock(&mutex_);
  Keep(store, store_);
  if (!new_name.empty()) Keep(new_name, new_name_.emplace());
}

absl::Status CallGate::TakeRows(std::int64_t rows) {
  absl::MutexLock lock(&mutex_);
  if (caller_.identity == nullptr || rows == 0) return absl::OkStatus();
  return caller_.usage->Take(*caller_.identity, 0, rows, SteadyNow());
}

bool CallGate::MayCall(const Identity& identity) const {
  const Role role = RoleOf(spec_.access);
  return role == Role::kAdmin ? identity.MayEverywhere(role) : identity.MaySomewhere(role);
}

absl::Status CallGate::FollowRules() {
  if (!authenticator_.HasChangedSince(caller_)) return absl::OkStatus();
  SOFTLOOKUP_ASSIGN_OR_RETURN(caller_, authenticator_.Identify(caller_.credentials));
  return absl::OkStatus();
}

absl::Status CallGate::CheckAccess(absl::string_view store,
                                   std::optional<absl::string_view> new_name) {
  absl::MutexLock lock(&mutex_);
  Keep(store, store_);
  if (new_name) Keep(*new_name, new_name_.emplace());
  return CheckStoreAccess();
}

absl::Status CallGate::CheckStoreAccess() {
  if (spec_.access == Access::kNone) return absl::OkStatus();
  SOFTLOOKUP_RETURN_IF_ERROR(FollowRules());
  const Role role = RoleOf(spec_.access);
  if (!caller_.May(role, store_)) return Denied(caller_, store_);
  if (new_name_ && !caller_.May(role, *new_name_)) return Denied(caller_, *new_name_);
  return absl::OkStatus();
}

absl::Status CallGate::Recheck() {
  absl::MutexLock lock(&mutex_);
  if (!store_.empty()) return CheckStoreAccess();
  SOFTLOOKUP_RETURN_IF_ERROR(FollowRules());
  const bool is_allowed =
      caller_.identity == nullptr || spec_.access == Access::kNone || MayCall(*caller_.identity);
  return is_allowed ? absl::OkStatus() : Denied(caller_, "");
}

std::shared_ptr<RequestBytes> CallGate::request_bytes() const {
  absl::MutexLock lock(&mutex_);
  return caller_.usage == nullptr ? nullptr : caller_.usage->bytes();
}

Caller CallGate::caller() const {
  absl::MutexLock lock(&mutex_);
  return caller_;
}

std::string CallGate::store() const {
  absl::MutexLock lock(&mutex_);
  return store_;
}

std::string CallGate::new_name() const {
  absl::MutexLock lock(&mutex_);
  return new_name_.value_or("");
}

absl::Status CallGate::Denied(const Caller& caller, absl::string_view store) const {
  const std::string where = store.empty() ? "" : absl::StrCat(" in the store \"", store, "\"");
  return MakeError(
      reasons::kPermissionDenied,
      absl::StrCat("\"", caller.name(), "\" may not call ", spec_.name, where,
                   "; that takes the role ", NameOf(RoleOf(spec_.access))),
      {{"identity", caller.name()}, {"role", std::string(NameOf(RoleOf(spec_.access)))}});
}

}  // namespace softlookup::server
