#ifndef SOFTLOOKUP_SERVER_RPC_CONNECTION_LISTENER_H_
#define SOFTLOOKUP_SERVER_RPC_CONNECTION_LISTENER_H_

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/file_descriptor.h"
#include "server/rpc/open_connections.h"

namespace softlookup::server {

// Accepts connections of gRPC's clients on a thread of its own and passes them on. While no
// descriptor is free, new connections wait, and the listener tries again after short pauses.
//
// It replaces gRPC's own listener, which has no maximum of open connections (OpenConnections) and
// stops for good when no descriptor is free.
class ConnectionListener {
 public:
  // Takes over the connected socket `fd`, which the socket `listener_fd` accepted. Closes `fd` when
  // the connection is over.
  using TakeOver = std::function<void(int listener_fd, int fd)>;

  // Accepts through `connections`, which must outlive this.
  explicit ConnectionListener(OpenConnections& connections) : connections_(connections) {}
  ~ConnectionListener() { Stop(); }
  ConnectionListener(const ConnectionListener&) = delete;
  ConnectionListener& operator=(const ConnectionListener&) = delete;

  // Listens at all addresses of `host` on `port` (0: any free one). Skips addresses that this
  // machine does not have. UNAVAILABLE if `host` is unknown, if one of the other addresses cannot
  // be bound, or if all addresses were skipped. The message says why, as in "Address already in
  // use".
  absl::Status Bind(const std::string& host, int port);
  int port() const { return port_; }
  // Whether only this machine can reach the port. Call this after Bind().
  bool is_loopback() const { return is_loopback_; }

  // Starts a thread that accepts connections. Call this once. The kernel ends a connection whose
  // peer has not acknowledged sent data for `peer_timeout`. UNAVAILABLE if no descriptor is free.
  absl::Status Start(absl::Duration peer_timeout, TakeOver take_over);
  // Stops accepting and closes the port. Open connections stay.
  void Stop();

 private:
  void Run();
  // Accepts waiting connections, at most kAcceptsAtOnce. Returns false if accepting fails for a
  // reason that may last, such as a lack of descriptors or of memory. The thread then pauses.
  bool AcceptFrom(int listener);

  OpenConnections& connections_;
  std::vector<FileDescriptor> listeners_;
  int port_ = 0;
  bool is_loopback_ = true;
  absl::Duration peer_timeout_;
  TakeOver take_over_;
  FileDescriptor wake_;  // Readable once the thread must end.
  std::thread thread_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_CONNECTION_LISTENER_H_
