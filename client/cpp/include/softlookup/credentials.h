#ifndef SOFTLOOKUP_CREDENTIALS_H_
#define SOFTLOOKUP_CREDENTIALS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace softlookup {

// How a client authenticates its server, and how it authenticates itself. The default is plaintext
// without a token, as a server on a loopback address accepts it.
//
// With TLS the server's certificate must name the host of the address that the client connects to,
// as a subject alternative name: a DNS name or an IP address.
struct Credentials {
  // TLS is used if this is set, or if any of the three below is not empty.
  bool tls = false;
  // PEM certificates. The server's certificate must chain to one of them. Empty: to one of the
  // system's.
  std::string tls_ca;
  // The client's own PEM certificate, followed by any intermediate ones, and its PEM private key.
  // Both or neither. For servers that ask for a client certificate. If the key is not the
  // certificate's, every call is Unavailable.
  std::string tls_certificate;
  std::string tls_key;

  // Sent with every call as the metadata `authorization: Bearer TOKEN`. At most 4096 printable
  // ASCII characters without a space; empty: none. Without TLS the network can read it. No error
  // message contains it.
  std::string token;

  bool uses_tls() const {
    return tls || !tls_ca.empty() || !tls_certificate.empty() || !tls_key.empty();
  }
};

// InvalidArgument if a member is malformed, or a certificate or a key is without the other.
absl::Status ValidateCredentials(const Credentials& credentials);

// Paths; an empty one leaves its member of Credentials empty.
struct CredentialFiles {
  std::string tls_ca;
  std::string tls_certificate;
  std::string tls_key;
  std::string token;
};

// Reads the files and trims white space around the token. Files may have any mode: an orchestrator
// often mounts secrets that every user of the container can read.
//
// InvalidArgument if a file cannot be read, is empty, is over 1 MiB, or is not what it should be.
// The message begins with the file's path and never quotes its contents.
absl::StatusOr<Credentials> LoadCredentials(const CredentialFiles& files);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CREDENTIALS_H_
