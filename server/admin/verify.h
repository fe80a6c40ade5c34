#ifndef SOFTLOOKUP_SERVER_ADMIN_VERIFY_H_
#define SOFTLOOKUP_SERVER_ADMIN_VERIFY_H_

#include <ostream>
#include <string>

namespace softlookup::server {

// Checks a data directory that no server has open: a line a store to `out`, and what is wrong.
// Returns whether all of it is whole.
bool VerifyDataDirectory(const std::string& directory, std::ostream& out);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ADMIN_VERIFY_H_
