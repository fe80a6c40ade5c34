#include "server/flag_text.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace softlookup::server {

std::optional<std::int64_t> ParseByteSize(absl::string_view text) {
  const auto digits_end = std::find_if_not(text.begin(), text.end(), absl::ascii_isdigit);
  const std::size_t digit_count = static_cast<std::size_t>(digits_end - text.begin());
  std::int64_t count = 0;
  if (!absl::SimpleAtoi(text.substr(0, digit_count), &count)) return std::nullopt;
  const absl::string_view unit = absl::StripLeadingAsciiWhitespace(text.substr(digit_count));
  int shift = 0;
  for (const char* name : {"", "KiB", "MiB", "GiB", "TiB"}) {
    if (absl::EqualsIgnoreCase(unit, name)) {
      if (count > std::numeric_limits<std::int64_t>::max() >> shift) return std::nullopt;
      return count << shift;
    }
    shift += 10;
  }
  return std::nullopt;
}

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

}  // namespace softlookup::server
