#ifndef SOFTLOOKUP_SERVER_FLAG_TEXT_H_
#define SOFTLOOKUP_SERVER_FLAG_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace softlookup::server {

// Parses a number of bytes, such as "4GiB", "512 MiB" or "1000000". The unit is KiB, MiB, GiB or
// TiB, in upper or lower case. Nullopt for other texts, and for a number that does not fit.
std::optional<std::int64_t> ParseByteSize(absl::string_view text);

struct HostPort {
  std::string host;  // Without brackets.
  int port = 0;
};
// Splits "HOST:PORT" or "[IPV6]:PORT", with a port of at most 65,535. Nullopt for other texts.
std::optional<HostPort> SplitHostPort(const std::string& address);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_FLAG_TEXT_H_
