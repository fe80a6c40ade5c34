#ifndef SOFTLOOKUP_CLIENT_CPP_ADDRESS_H_
#define SOFTLOOKUP_CLIENT_CPP_ADDRESS_H_

#include <string_view>

#include "absl/status/status.h"

namespace softlookup::client_internal {

// Checks the form of a server's address. gRPC itself takes anything, reports an unusable name only
// with each call, and takes a port modulo 65536.
//
// OK for HOST:PORT and [IPV6]:PORT, and for gRPC's names of these forms: dns:HOST:PORT,
// dns:///HOST:PORT, dns://RESOLVER/HOST:PORT, ipv4:IP:PORT,..., ipv6:[IP]:PORT,..., and unix:PATH.
// A port is in [1, 65535]. InvalidArgument for anything else; the message says what is wrong, and
// which forms there are.
absl::Status CheckAddress(std::string_view address);

// Returns what CheckAddress() says is wrong with `address`. Empty if nothing is.
std::string_view AddressFault(std::string_view address);

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_ADDRESS_H_
