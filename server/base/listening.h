#ifndef SOFTLOOKUP_SERVER_BASE_LISTENING_H_
#define SOFTLOOKUP_SERVER_BASE_LISTENING_H_

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/time/time.h"

// Shared by the listeners of the gRPC port and the HTTP port.
namespace softlookup::server {

// Maximum number of connections to accept from one socket before other sockets get a turn.
inline constexpr int kAcceptsAtOnce = 64;
// Longest pause after an accept() that failed for lack of a descriptor or for another reason that
// may last.
inline constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);

// Returns true if accept() can be called again at once after it failed with `error`: a signal
// interrupted it, or the connection that it was to return is lost and has left the listener's
// queue. accept(2) lists the errors of lost connections. After any other error, the connection may
// still be in the queue. A caller that tried again at once could then loop for ever.
inline bool IsOfLostConnection(int error) {
  switch (error) {
    case ECONNABORTED:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case EINTR:
    case ENETDOWN:
    case ENETUNREACH:
    case ENONET:
    case ENOPROTOOPT:
    case EOPNOTSUPP:
    case EPROTO:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

// Says why a server cannot listen on an address, and what may help. `lookup_error` is what
// getaddrinfo() returned for the host. If it is 0, `error` is the errno of the call on the socket
// that failed.
inline std::string WhyNotListening(int lookup_error, int error) {
  if (lookup_error != 0) return std::string("unknown host: ") + gai_strerror(lookup_error);
  std::string text = std::strerror(error);
  switch (error) {
    case EADDRINUSE:
      return text + "; is another server running? Port 0 picks a free port";
    case EADDRNOTAVAIL:
      return text + ": this machine does not have that address";
    case EACCES:
      return text + "; take a port from 1024 on";
    default:
      return text;
  }
}

// The port on which `socket` listens.
inline int PortOf(int socket) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof(address);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes);
  // IPv4 and IPv6 addresses have the port at the same offset.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_BASE_LISTENING_H_
