#ifndef SOFTLOOKUP_CLIENT_CPP_ADDRESS_H_
#define SOFTLOOKUP_CLIENT_CPP_ADDRESS_H_

#include <string>
#include <string_view>
#include <vector>

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

// Splits the text that names a client's servers: addresses with commas between them. A text that
// begins with unix:, ipv4: or ipv6: is one address, because these names of gRPC can have commas.
std::vector<std::string> SplitServers(std::string_view servers);

// OK if CheckAddress() takes each address in `servers`. Otherwise its error for the first other
// one, which also quotes `servers` if they are several.
absl::Status CheckServers(std::string_view servers);

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_ADDRESS_H_
