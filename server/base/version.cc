#include "server/base/version.h"

#include <vector>

#include "absl/strings/str_split.h"

namespace softlookup::server {

const char* VersionText() { return SOFTLOOKUP_VERSION_TEXT; }

std::pair<std::string, std::string> VersionAndCommit() {
  const std::vector<std::string> words = absl::StrSplit(VersionText(), absl::ByAnyChar(" ()"));
  return {words[0], words.size() > 2 ? words[2] : ""};
}

}  // namespace softlookup::server
