#ifndef SOFTLOOKUP_SERVER_FLAG_TEXT_H_
#define SOFTLOOKUP_SERVER_FLAG_TEXT_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace softlookup::server {

struct HostPort {
  std::string host;  // Without brackets.
  int port = 0;
};
// Splits "HOST:PORT" or "[IPV6]:PORT", with a port of at most 65,535. Nullopt for other texts.
std::optional<HostPort> SplitHostPort(const std::string& address);

// Whether `text` may be the name of a cluster, a group or a node.
bool IsClusterName(absl::string_view text);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_FLAG_TEXT_H_
