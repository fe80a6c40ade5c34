#ifndef SOFTLOOKUP_SERVER_BASE_VERSION_H_
#define SOFTLOOKUP_SERVER_BASE_VERSION_H_

#include <string>
#include <utility>

namespace softlookup::server {

// Returns the version and the commit that was built, such as "0.2.0 (0123456789ab)". Returns the
// version alone if the build did not know the commit.
const char* VersionText();

// Returns the version and the commit separately. The commit is "" if the build did not know it.
std::pair<std::string, std::string> VersionAndCommit();

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_BASE_VERSION_H_
