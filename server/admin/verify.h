#ifndef SOFTLOOKUP_SERVER_ADMIN_VERIFY_H_
#define SOFTLOOKUP_SERVER_ADMIN_VERIFY_H_

#include <ostream>
#include <string>

namespace softlookup::server {

// Checks a data directory that no server has open. Writes a line to `out` for each whole store and
// for each damage. Writes a last line if all is whole, or if an error stops the check. Returns
// whether all is whole.
bool VerifyDataDirectory(const std::string& directory, std::ostream& out);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ADMIN_VERIFY_H_
