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
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/security/account.h"
#include "server/security/auth_rules.h"
#include "server/security/identity.h"

namespace softlookup::server {

// What a caller shows of itself. The token itself is not kept.
struct Credentials {
  std::optional<Sha256> token;
  std::vector<std::string> certificate_names;  // Of a certificate that the handshake has verified.
};

// The credentials of a call. UNAUTHENTICATED if it has an `authorization` that is not one bearer
// token.
absl::StatusOr<Credentials> CredentialsOf(const grpc::ServerContextBase& context);

// Who makes a call, and what they may do, as of some version of the rules.
struct Caller {
  // Null, both, if the server asks nobody who they are: everybody may do everything.
  std::shared_ptr<const Identity> identity;
  std::shared_ptr<Account> account;
  Credentials credentials;
  std::uint64_t version = 0;

  // "" if nobody is asked.
  const std::string& name() const;
  bool May(Role role, absl::string_view store) const {
    return identity == nullptr || identity->May(role, store);
  }
};

// Tells who calls. Thread-safe.
class Authenticator {
 public:
  // From now on, callers are who `rules` says.
  void SetRules(std::shared_ptr<const AuthRules> rules);

  // Whether anybody is asked who they are.
  bool asks() const { return version_.load(std::memory_order_acquire) > 0; }

  // UNAUTHENTICATED if the rules know nobody with these credentials. A token goes before a
  // certificate.
  absl::StatusOr<Caller> Identify(Credentials credentials) const;

  // Whether somebody else, or nobody, might be identified now.
  bool HasChangedSince(const Caller& caller) const {
    return version_.load(std::memory_order_acquire) != caller.version;
  }

 private:
  std::atomic<std::uint64_t> version_{0};  // Of the rules; 0: there are none.
  mutable absl::Mutex mutex_;
  std::shared_ptr<const AuthRules> rules_ ABSL_GUARDED_BY(mutex_);
  // By identity. Those of names that the rules no longer have are forgotten.
  mutable absl::flat_hash_map<std::string, std::shared_ptr<Account>> accounts_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SECURITY_AUTHENTICATOR_H_
