#ifndef SOFTLOOKUP_CLIENT_TOOL_CREDENTIAL_CHECK_H_
#define SOFTLOOKUP_CLIENT_TOOL_CREDENTIAL_CHECK_H_

#include "absl/status/status.h"
#include "softlookup/credentials.h"

namespace softlookup::tool {

// An input error, under the file's name, for certificates and a key that do not parse, and for a
// key that is not the certificate's. gRPC says no more of them than that it cannot connect.
absl::Status CheckCertificates(const Credentials& credentials, const CredentialFiles& files);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_CREDENTIAL_CHECK_H_
