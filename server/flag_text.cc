#include "server/flag_text.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace softlookup::server {

std::optional<HostPort> SplitHostPort(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  HostPort result{.host = address.substr(0, colon)};
  if (result.host.front() == '[') {
    if (result.host.size() < 3 || result.host.back() != ']') return std::nullopt;
    result.host = result.host.substr(1, result.host.size() - 2);
  } else if (result.host.find(':') != std::string::npos) {
    return std::nullopt;
  }
  const std::string port = address.substr(colon + 1);
  if (port.empty() || !std::all_of(port.begin(), port.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(port, &result.port) || result.port > 65535) {
    return std::nullopt;
  }
  return result;
}

bool IsClusterName(absl::string_view text) {
  constexpr std::size_t kBytesMax = 64;
  return !text.empty() && text.size() <= kBytesMax && std::ranges::all_of(text, [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

}  // namespace softlookup::server
