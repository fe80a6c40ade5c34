#ifndef SOFTLOOKUP_CLIENT_TOOL_CREDENTIAL_CHECK_H_
#define SOFTLOOKUP_CLIENT_TOOL_CREDENTIAL_CHECK_H_

#include "absl/status/status.h"
#include "softlookup/credentials.h"

namespace softlookup::tool {

// Checks certificates and key before gRPC uses them, because gRPC would only report that it cannot
// connect. InputError, with the file's name, if the first certificate of a file or the key does not
// parse. Also InputError if the key does not belong to the certificate.
absl::Status CheckCertificates(const Credentials& credentials, const CredentialFiles& files);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_CREDENTIAL_CHECK_H_
