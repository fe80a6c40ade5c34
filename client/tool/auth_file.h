#ifndef SOFTLOOKUP_CLIENT_TOOL_AUTH_FILE_H_
#define SOFTLOOKUP_CLIENT_TOOL_AUTH_FILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/output/json.h"

namespace softlookup::tool {

// The file of softlookup-server --auth: {"identities": [{"name", "token_sha256"?,
// "certificate_name"?, "grants": [{"role", "stores"}], "limits"?: {...}}]}. An identity has a
// token, a certificate's name or both.

struct Grant {
  std::string role;    // One of AuthRoles().
  std::string stores;  // A store's name, a prefix that ends in /*, or *.
};

struct Identity {
  std::string name;
  std::string token_sha256;      // In hexadecimal. Empty: certificate only.
  std::string certificate_name;  // Name in a client certificate. Empty: token only.
  std::vector<Grant> grants;
  std::vector<std::pair<std::string, std::uint64_t>> limits;  // Names as in the file.
};

// "read", "write", "manage", "admin".
const std::vector<std::string>& AuthRoles();

// InvalidArgument for a malformed name or pattern, a certificate's name that is not UTF-8, an
// unknown role, no grant, or the role admin on anything but *. Does not check the limits.
absl::Status ValidateIdentity(const Identity& identity);

// Whether an identity in the auth file's `text` has this name. Empty text is an auth file without
// identities. InvalidArgument if `text` is not an auth file.
absl::StatusOr<bool> HasIdentity(const std::string& text, const std::string& name);

// Returns the auth file's `text` with `identity` added at the end. Empty text is a new file. The
// other members keep their order. The result is indented by two spaces. InvalidArgument if `text`
// is not an auth file; AlreadyExists if an identity has the same name or the same certificate's
// name.
absl::StatusOr<std::string> WithIdentity(const std::string& text, const Identity& identity);

// Returns the auth file's `text` without the identity `name`. The rest stays as WithIdentity()
// says, even what the server would refuse. InvalidArgument if `text` is not an auth file; NotFound
// if no identity has this name.
absl::StatusOr<std::string> WithoutIdentity(const std::string& text, const std::string& name);

// Whether an identity in the auth file's `text` has the role admin. False if `text` is not an auth
// file.
bool HasAdmin(const std::string& text);

// Returns what the auth file's `text` says of its identities, in order: a list of {"name",
// "has_token", "certificate_name"?, "grants": [{"role", "stores"}], "limits"?: {...}}. It has no
// digest of a token. InvalidArgument, with the place, if an identity has no name, or grants or
// limits that are malformed.
absl::StatusOr<output::Json> IdentitiesOf(const std::string& text);

// Returns a new token: 32 random bytes in base64url without padding.
absl::StatusOr<std::string> NewToken();

// Whether `text` is a token as NewToken() makes it.
bool IsToken(const std::string& text);

// Returns the SHA-256 of the token's characters, in hexadecimal.
absl::StatusOr<std::string> TokenDigest(const std::string& token);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_AUTH_FILE_H_
