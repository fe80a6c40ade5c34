#ifndef SOFTLOOKUP_CLIENT_CPP_SERVER_ADDRESS_H_
#define SOFTLOOKUP_CLIENT_CPP_SERVER_ADDRESS_H_

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace softlookup::client_internal {

// Whether `address`, a gRPC target name, ends in ":" and a number that is no port. gRPC takes such
// a number modulo 2^16, and so connects to another port.
inline bool HasImpossiblePort(absl::string_view address) {
  const std::size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos) return false;
  const absl::string_view port = address.substr(colon + 1);
  if (port.empty() || !std::all_of(port.begin(), port.end(), absl::ascii_isdigit)) return false;
  std::uint32_t number;
  return !absl::SimpleAtoi(port, &number) || number < 1 || number > 65535;
}

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_SERVER_ADDRESS_H_
