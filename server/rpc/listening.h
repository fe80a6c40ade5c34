#ifndef SOFTLOOKUP_SERVER_RPC_LISTENING_H_
#define SOFTLOOKUP_SERVER_RPC_LISTENING_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include "absl/time/time.h"

// What both ports have in common.
namespace softlookup::server {

// Connections that are accepted before others are looked at.
inline constexpr int kAcceptsAtOnce = 64;
// Before the next try to accept a connection when there was no descriptor for it.
inline constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);

// Where a socket listens.
inline int PortOf(int socket) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof(address);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes);
  // Both families have it at the same place.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_LISTENING_H_
