#ifndef SOFTLOOKUP_CLIENT_TOOL_CREDENTIAL_FLAGS_H_
#define SOFTLOOKUP_CLIENT_TOOL_CREDENTIAL_FLAGS_H_

#include <CLI/CLI.hpp>

#include "absl/status/statusor.h"
#include "softlookup/credentials.h"

namespace softlookup::tool {

// Adds the options that name the files of Credentials, for all commands. Each option can also be
// set by an environment variable of its own. `files` must outlive `app`.
void AddCredentialFlags(CLI::App* app, CredentialFiles* files);

// Reads and checks the files that the options name. UsageError if only one of the certificate and
// its key is named; InputError if a file cannot be read or does not hold what it should.
absl::StatusOr<Credentials> CredentialsFrom(const CredentialFiles& files);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_CREDENTIAL_FLAGS_H_
