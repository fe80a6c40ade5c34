#ifndef SOFTLOOKUP_CLIENT_TOOL_CREDENTIAL_FLAGS_H_
#define SOFTLOOKUP_CLIENT_TOOL_CREDENTIAL_FLAGS_H_

#include <CLI/CLI.hpp>

#include "absl/status/statusor.h"
#include "softlookup/credentials.h"

namespace softlookup::tool {

// Adds the options that name the files of Credentials, for all commands. Each option also comes
// from the environment. `files` must outlive `app`.
void AddCredentialFlags(CLI::App* app, CredentialFiles* files);

// Reads and checks the files that the options name. A usage error for a certificate without its key
// or the other way round; an input error for a file that does not hold what it should.
absl::StatusOr<Credentials> CredentialsFrom(const CredentialFiles& files);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_CREDENTIAL_FLAGS_H_
