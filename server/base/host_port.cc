#include "server/base/host_port.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace softlookup::server {
namespace {

// Whether `host` is an address of 127.0.0.0/8, and no name that only begins like one.
bool IsLoopbackIpv4(const std::string& host) {
  in_addr address;
  return inet_pton(AF_INET, host.c_str(), &address) == 1 && host.starts_with("127.");
}

}  // namespace

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" || IsLoopbackIpv4(host);
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

std::string JoinHostPort(const std::string& host, int port) {
  return host.find(':') == std::string::npos ? absl::StrCat(host, ":", port)
                                             : absl::StrCat("[", host, "]:", port);
}

}  // namespace softlookup::server
