#ifndef SOFTLOOKUP_CLIENT_CPP_CERTIFICATE_VALIDITY_H_
#define SOFTLOOKUP_CLIENT_CPP_CERTIFICATE_VALIDITY_H_

#include <string>

#include "absl/time/time.h"

namespace softlookup::client_internal {

// Returns what is wrong at `now` with the dates of the first certificate in `pem`: it has expired,
// or is not valid yet. In an error, these words follow the certificate's name. Empty if nothing is
// wrong, or if the certificate does not parse.
std::string ValidityFault(const std::string& pem, absl::Time now);

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_CERTIFICATE_VALIDITY_H_
