#ifndef SOFTLOOKUP_CREDENTIALS_H_
#define SOFTLOOKUP_CREDENTIALS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace softlookup {

// How a client authenticates its server, and how it authenticates itself. The default is plaintext
// without a token, which a server on a loopback address accepts.
//
// With TLS, the server's certificate must have a subject alternative name, a DNS name or an IP
// address, for the host that the client connects to.
struct Credentials {
  // TLS is used if this is true, or if tls_ca, tls_certificate or tls_key is not empty.
  bool tls = false;
  // PEM certificates of authorities. The server's certificate must chain to one of them. Empty: it
  // must chain to one of the system's authorities.
  std::string tls_ca = {};
  // The client's own PEM certificate, followed by any intermediate ones, and its PEM private key,
  // for servers that ask for a client certificate. Set both or neither. That the key belongs to the
  // certificate is not checked before a call: if it does not, every call is tried again until its
  // deadline or RetryOptions::attempts_max, and fails with Unavailable and "empty address list".
  // `openssl x509 -in CERTIFICATE -noout -pubkey` and `openssl pkey -in KEY -pubout` print the same
  // if they belong together. The dates of the certificate are checked before a call: servers refuse
  // one that has expired or is not valid yet, and gRPC would report only that it cannot connect.
  std::string tls_certificate = {};
  std::string tls_key = {};

  // Sent with every call as the metadata `authorization: Bearer TOKEN`. At most 4096 printable
  // ASCII characters without a space or a line break, or empty for no token. Trim a token that is
  // read from a file, as LoadCredentials() does. Without TLS, the network can read it.
  // No error message contains it.
  std::string token = {};

  bool uses_tls() const {
    return tls || !tls_ca.empty() || !tls_certificate.empty() || !tls_key.empty();
  }
};

// Returns InvalidArgument if a member is malformed, if only one of certificate and key is set, or
// if the first certificate in tls_certificate has expired or is not valid yet. The message then has
// the date.
absl::Status ValidateCredentials(const Credentials& credentials);

// Paths of files for the members of Credentials. An empty path leaves its member empty.
struct CredentialFiles {
  std::string tls_ca = {};
  std::string tls_certificate = {};
  std::string tls_key = {};
  std::string token = {};
};

// Reads the files and trims white space around their contents. Files may have any mode: an
// orchestrator often mounts secrets that every user of the container can read.
//
// InvalidArgument if a file cannot be read, is empty, is over 1 MiB, does not hold what it should,
// or holds a client certificate that has expired or is not valid yet. The message then begins with
// the file's path and never quotes its contents. Also InvalidArgument if only one of certificate
// and key has a path.
absl::StatusOr<Credentials> LoadCredentials(const CredentialFiles& files);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CREDENTIALS_H_
