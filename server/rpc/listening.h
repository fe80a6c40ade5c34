#ifndef SOFTLOOKUP_SERVER_RPC_LISTENING_H_
#define SOFTLOOKUP_SERVER_RPC_LISTENING_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include "absl/time/time.h"

// Shared by the listeners of the gRPC port and the HTTP port.
namespace softlookup::server {

// Connections to accept from one socket before other sockets get a turn.
inline constexpr int kAcceptsAtOnce = 64;
// Pause before the next accept, after one found no free descriptor.
inline constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);

// The port on which `socket` listens.
inline int PortOf(int socket) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof(address);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes);
  // IPv4 and IPv6 addresses have the port at the same offset.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_LISTENING_H_
