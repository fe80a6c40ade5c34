#include "server/security/authenticator.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/base/error.h"
#include "core/base/steady_time.h"

namespace softlookup::server {
namespace {

constexpr absl::string_view kScheme = "bearer ";
// Most bytes of an `authorization` value, "Bearer " included. A longer value is refused, because
// the server hashes the token of every call. The C++ client sends tokens of up to 4096 bytes.
// `softlookup auth add` makes tokens of 43 bytes.
constexpr std::size_t kAuthorizationBytesMax = kScheme.size() + 4096;

constexpr absl::string_view kSameFile = ": the router and this node need the same --auth file";

absl::Status Unauthenticated(absl::string_view why) {
  return MakeError(reasons::kUnauthenticated, why);
}

absl::string_view View(const grpc::string_ref& text) { return {text.data(), text.size()}; }

void AddProperties(const grpc::AuthContext& context, const char* property,
                   std::vector<std::string>& names) {
  for (const grpc::string_ref& value : context.FindPropertyValues(property)) {
    names.emplace_back(value.data(), value.size());
  }
}

std::vector<std::string> CertificateNamesOf(const grpc::ServerContextBase& context) {
  std::vector<std::string> names;
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr) return names;
  AddProperties(*auth, GRPC_PEER_DNS_PROPERTY_NAME, names);
  AddProperties(*auth, GRPC_PEER_URI_PROPERTY_NAME, names);
  // The common name counts only if the certificate has none of the other names.
  if (names.empty()) AddProperties(*auth, GRPC_X509_CN_PROPERTY_NAME, names);
  return names;
}

}  // namespace

absl::StatusOr<Credentials> CredentialsOf(const grpc::ServerContextBase& context) {
  Credentials credentials;
  const auto [begin, end] = context.client_metadata().equal_range("authorization");
  if (begin != end) {
    absl::string_view value = View(begin->second);
    const bool is_bearer = std::next(begin) == end && value.size() > kScheme.size() &&
                           value.size() <= kAuthorizationBytesMax &&
                           absl::EqualsIgnoreCase(value.substr(0, kScheme.size()), kScheme);
    if (!is_bearer) {
      return Unauthenticated("The authorization must be one \"Bearer TOKEN\"");
    }
    credentials.token = Sha256Of(value.substr(kScheme.size()));
  }
  credentials.certificate_names = CertificateNamesOf(context);
  return credentials;
}

const std::string& Caller::name() const {
  static const std::string& nobody = *new std::string;
  return identity == nullptr ? nobody : identity->name;
}

void Authenticator::SetRules(std::shared_ptr<const AuthRules> rules) {
  absl::MutexLock lock(&mutex_);
  rules_ = std::move(rules);
  usages_.KeepOnly(*rules_);
  version_.fetch_add(1, std::memory_order_release);
}

absl::StatusOr<Caller> Authenticator::Identify(Credentials credentials) const {
  Caller caller;
  const std::string* const routed =
      credentials.routed_identity.has_value() ? &*credentials.routed_identity : nullptr;
  if (!requires_identity()) {
    if (routed != nullptr && !routed->empty()) {
      return Unauthenticated(
          absl::StrCat("A router has identified the caller, and this node has no "
                       "auth rules",
                       kSameFile));
    }
    return caller;
  }
  absl::MutexLock lock(&mutex_);
  caller.version = version_.load(std::memory_order_relaxed);
  caller.identity = routed != nullptr   ? rules_->FindByName(*routed)
                    : credentials.token ? rules_->FindByToken(*credentials.token)
                                        : rules_->FindByCertificate(credentials.certificate_names);
  if (caller.identity == nullptr) {
    if (routed != nullptr) {
      return Unauthenticated(absl::StrCat(
          routed->empty() ? "A router has not identified the caller, and this node has auth rules"
                          : "This node does not know the identity that a router has found",
          kSameFile));
    }
    return credentials.token ? Unauthenticated("The token is not one that this server knows")
           : credentials.certificate_names.empty()
               ? Unauthenticated("This server asks for a token or a client certificate")
               : Unauthenticated(
                     "The call has no token, and the certificate's name is not one that this "
                     "server knows");
  }
  caller.usage = usages_.Of(*caller.identity, SteadyNow());
  caller.credentials = std::move(credentials);
  return caller;
}

}  // namespace softlookup::server
