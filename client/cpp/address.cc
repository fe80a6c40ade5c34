#include "client/cpp/address.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace softlookup::client_internal {
namespace {

// The functions below return what is wrong; empty if nothing is.

absl::string_view PortFault(absl::string_view port) {
  if (port.empty()) return "the port is missing";
  std::uint32_t number = 0;
  if (!std::all_of(port.begin(), port.end(), absl::ascii_isdigit)) return "the port is no number";
  if (!absl::SimpleAtoi(port, &number) || number < 1 || number > 65535) {
    return "the port is not in [1, 65535]";
  }
  return "";
}

// Of HOST:PORT or [IPV6]:PORT.
absl::string_view HostPortFault(absl::string_view name) {
  const auto is_no_host = [](unsigned char c) { return !absl::ascii_isgraph(c) || c == '/'; };
  if (std::any_of(name.begin(), name.end(), is_no_host)) {
    return "a host has no slash, space or control character";
  }
  const std::size_t colon = name.rfind(':');
  if (absl::StartsWith(name, "[")) {
    const std::size_t end = name.find(']');
    if (end == absl::string_view::npos) return "the bracket does not end";
    if (end == 1) return "the host is missing";
    if (colon != end + 1) return "the port is missing";
  } else {
    if (colon == absl::string_view::npos) return "the port is missing";
    if (colon == 0) return "the host is missing";
    if (name.find(':') != colon) return "an IPv6 address takes brackets and a port";
  }
  return PortFault(name.substr(colon + 1));
}

// Of what follows the scheme in dns:, ipv4: and ipv6:, as in ///HOST:PORT.
absl::string_view WithoutAuthority(absl::string_view rest) {
  if (absl::ConsumePrefix(&rest, "//")) {
    const std::size_t slash = rest.find('/');
    rest.remove_prefix(slash == absl::string_view::npos ? rest.size() : slash);
  }
  return absl::StripPrefix(rest, "/");
}

absl::string_view Fault(absl::string_view address) {
  if (address.empty()) return "it is empty";
  if (absl::ConsumePrefix(&address, "unix:")) return address.empty() ? "the path is missing" : "";
  if (absl::ConsumePrefix(&address, "dns:")) return HostPortFault(WithoutAuthority(address));
  if (absl::ConsumePrefix(&address, "ipv4:") || absl::ConsumePrefix(&address, "ipv6:")) {
    for (const absl::string_view each : absl::StrSplit(WithoutAuthority(address), ',')) {
      // gRPC's names may have brackets as they are in URIs.
      const std::string name =
          absl::StrReplaceAll(each, {{"%5B", "["}, {"%5b", "["}, {"%5D", "]"}, {"%5d", "]"}});
      const absl::string_view fault = HostPortFault(name);
      if (!fault.empty()) return fault;
    }
    return "";
  }
  if (absl::StrContains(address, "://")) return "leave out what ends in ://";
  return HostPortFault(address);
}

// The error for `address`, with which `fault` is wrong. `where` follows the quoted address.
absl::Status AddressError(absl::string_view address, absl::string_view where,
                          absl::string_view fault) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the server address \"", absl::CHexEscape(address), "\"", where, ": ", fault,
      "; an address is HOST:PORT or [IPV6]:PORT, or a name of gRPC that begins with dns:, unix:, "
      "ipv4: or ipv6:"));
}

}  // namespace

std::string_view AddressFault(std::string_view address) {
  const absl::string_view fault = Fault(absl::string_view(address.data(), address.size()));
  return {fault.data(), fault.size()};
}

absl::Status CheckAddress(std::string_view address) {
  const absl::string_view text(address.data(), address.size());
  const absl::string_view fault = Fault(text);
  return fault.empty() ? absl::OkStatus() : AddressError(text, "", fault);
}

std::vector<std::string> SplitServers(std::string_view servers) {
  const absl::string_view text(servers.data(), servers.size());
  for (const absl::string_view scheme : {"unix:", "ipv4:", "ipv6:"}) {
    if (absl::StartsWith(text, scheme)) return {std::string(text)};
  }
  return absl::StrSplit(text, ',');
}

absl::Status CheckServers(std::string_view servers) {
  const std::vector<std::string> addresses = SplitServers(servers);
  if (addresses.size() == 1) return CheckAddress(servers);
  for (const std::string& address : addresses) {
    const absl::string_view fault = Fault(address);
    if (fault.empty()) continue;
    const absl::string_view text(servers.data(), servers.size());
    return AddressError(address, absl::StrCat(" in \"", absl::CHexEscape(text), "\""), fault);
  }
  return absl::OkStatus();
}

}  // namespace softlookup::client_internal
