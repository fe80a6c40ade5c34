#ifndef SOFTLOOKUP_SERVER_SECURITY_AUTHENTICATOR_H_
#define SOFTLOOKUP_SERVER_SECURITY_AUTHENTICATOR_H_

#include <grpcpp/server_context.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/security/auth_rules.h"
#include "server/security/identity.h"
#include "server/security/identity_usage.h"
#include "server/security/identity_usages.h"

namespace softlookup::server {

// What a caller presents to be identified.
struct Credentials {
  std::optional<Sha256> token;  // The digest of the token. The token itself is not kept.
  // The names in the client certificate, which the TLS handshake has verified.
  std::vector<std::string> certificate_names;
  // The name of the identity that a router has identified; "" if the router has no auth rules.
  // nullopt: the call comes from no router. Otherwise the other credentials are ignored.
  std::optional<std::string> routed_identity;
};

// Returns the credentials of a call. UNAUTHENTICATED if it has `authorization` metadata that is not
// exactly one bearer token, or a token that is too long.
absl::StatusOr<Credentials> CredentialsOf(const grpc::ServerContextBase& context);

// Who makes a call, and what this caller may do, as of one version of the auth rules.
struct Caller {
  // `identity` and `usage` are null if the server has no auth rules. Every caller may then do
  // everything.
  std::shared_ptr<const Identity> identity;
  std::shared_ptr<IdentityUsage> usage;
  Credentials credentials;
  std::uint64_t version = 0;  // Of the rules that identified it. 0: there were none.

  // The identity's name; empty if there is none.
  const std::string& name() const;
  bool May(Role role, absl::string_view store) const {
    return identity == nullptr || identity->May(role, store);
  }
};

// Identifies callers by the current auth rules. Thread-safe.
class Authenticator {
 public:
  // Identifies callers by `rules` from now on.
  void SetRules(std::shared_ptr<const AuthRules> rules);

  // Whether callers must identify themselves: true once there are rules.
  bool requires_identity() const { return version_.load(std::memory_order_acquire) > 0; }

  // Returns the caller with these credentials. If they have a token, the certificate is ignored.
  // UNAUTHENTICATED if they belong to no identity, or the certificate to several. Without rules,
  // returns a caller without an identity; UNAUTHENTICATED if a router has identified one.
  absl::StatusOr<Caller> Identify(Credentials credentials) const;

  // Whether the rules have changed since `caller` was identified. Its credentials may then stand
  // for another identity, or for none.
  bool HasChangedSince(const Caller& caller) const {
    return version_.load(std::memory_order_acquire) != caller.version;
  }

 private:
  std::atomic<std::uint64_t> version_{0};  // Of the rules. 0: there are none.
  mutable absl::Mutex mutex_;
  std::shared_ptr<const AuthRules> rules_ ABSL_GUARDED_BY(mutex_);
  // Guarded by the lock of rules_, so that a usage gets its limit from the rules that identified
  // its caller.
  mutable IdentityUsages usages_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SECURITY_AUTHENTICATOR_H_
