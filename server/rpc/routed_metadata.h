#ifndef SOFTLOOKUP_SERVER_RPC_ROUTED_METADATA_H_
#define SOFTLOOKUP_SERVER_RPC_ROUTED_METADATA_H_

#include <grpcpp/server_context.h>

#include <cstddef>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "server/security/authenticator.h"

namespace softlookup::server {

// Who has sent a call: a client, on the port for everybody, or a router, on the port of nodes. Only
// the metadata of a router's call may be read by the functions below.
enum class CallOrigin { kClient, kRouter };

// gRPC sends these keys as they are with each call, so they are short.

// The name of the identity that the router has identified. Absent if the router has no auth rules.
inline constexpr char kRoutedIdentityKey[] = "identity";
// The address of the client as the router sees it, in gRPC's notation.
inline constexpr char kRoutedClientKey[] = "client";
// The longest time that a lookup may wait for its revision, in whole milliseconds. If the router
// does not tell it, that is kPartRevisionWait for a part of a lookup, and infinite for a whole one.
inline constexpr char kRoutedRevisionWaitKey[] = "revision-wait-ms";
inline constexpr absl::Duration kPartRevisionWait = absl::Milliseconds(250);
// There if the router can ask the ranges of a store for their parts of a lookup.
inline constexpr char kRoutedRangesKey[] = "ranges";

inline constexpr std::size_t kRoutedClientBytesMax = 100;

// Returns the credentials of a router's call. A name that is absent, or there twice, becomes "",
// which is no identity's name.
Credentials RoutedCredentialsOf(const grpc::ServerContextBase& context);

// Returns the address of the client. nullopt if the router tells none, tells two, or tells one that
// is empty, too long or not printable.
std::optional<std::string> RoutedClientOf(const grpc::ServerContextBase& context);

// Whether the router can ask ranges for parts.
bool KnowsRanges(const grpc::ServerContextBase& context);

// Returns how long a lookup may wait for its revision. nullopt if the router does not tell, or
// tells anything but a number of at most nine digits.
std::optional<absl::Duration> RoutedRevisionWaitOf(const grpc::ServerContextBase& context);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_ROUTED_METADATA_H_
