#ifndef SOFTLOOKUP_SERVER_BASE_READ_FILE_H_
#define SOFTLOOKUP_SERVER_BASE_READ_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace softlookup::server {

// Returns the contents of a private key, a certificate or an auth file. INVALID_ARGUMENT if it
// cannot be read, or is far larger than any of these.
absl::StatusOr<std::string> ReadFile(const std::string& path);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_BASE_READ_FILE_H_
