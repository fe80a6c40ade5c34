#ifndef SOFTLOOKUP_SERVER_RPC_CONNECTION_LISTENER_H_
#define SOFTLOOKUP_SERVER_RPC_CONNECTION_LISTENER_H_

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/rpc/file_descriptor.h"

namespace softlookup::server {

// Accepts connections of gRPC's clients and passes them on, up to a maximum of open ones. Closes
// any further connection at once. While no descriptor is free, new connections wait, and the
// listener tries again after short pauses.
//
// gRPC's own listener has no such maximum, and stops for good when no descriptor is free.
class ConnectionListener {
 public:
  // Takes over the connected socket `fd`, which the socket `listener_fd` accepted. Closes `fd` when
  // the connection is over.
  using TakeOver = std::function<void(int listener_fd, int fd)>;

  ConnectionListener() = default;
  ~ConnectionListener() { Stop(); }
  ConnectionListener(const ConnectionListener&) = delete;
  ConnectionListener& operator=(const ConnectionListener&) = delete;

  // Listens at all addresses of `host` on `port` (0: any free one). Skips addresses that this
  // machine does not have. UNAVAILABLE if `host` is unknown, if another address cannot be bound, or
  // if no address is left.
  absl::Status Bind(const std::string& host, int port);
  int port() const { return port_; }
  // Whether only this machine can reach the port. Call this after Bind().
  bool is_loopback() const { return is_loopback_; }

  // Starts a thread that accepts connections. Call this once. The kernel ends a connection whose
  // peer has not acknowledged sent data for `peer_timeout`. UNAVAILABLE if no descriptor is free.
  absl::Status Start(std::size_t connections_max, absl::Duration peer_timeout, TakeOver take_over);
  // Resets the connection of `peer`, an address as gRPC writes it. Bytes that gRPC has not read
  // from it yet are lost. Returns false if no such connection is open. Thread-safe.
  bool Cut(const std::string& peer);
  // Stops accepting and closes the port. Open connections stay.
  void Stop();

 private:
  void Run();
  // Accepts waiting connections, at most kAcceptsAtOnce. False if there is no descriptor or memory
  // for one; the thread then pauses.
  bool AcceptFrom(int listener);
  // Whether one more connection may be open.
  bool MayAccept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::vector<FileDescriptor> listeners_;
  int port_ = 0;
  bool is_loopback_ = true;
  std::size_t connections_max_ = 0;
  absl::Duration peer_timeout_;
  TakeOver take_over_;
  FileDescriptor wake_;  // Readable once the thread must end.
  std::thread thread_;

  // gRPC does not report when it closes a connection. The inode shows it: after that, the
  // descriptor is free, or belongs to another socket with another inode.
  struct Connection {
    ino_t inode;
    std::string peer;
  };
  absl::Mutex mutex_;
  // The connections that may be open, by descriptor.
  absl::flat_hash_map<int, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  // MayAccept() does not look for closed connections before this time.
  absl::Time next_check_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

// Returns the number of connections to allow: `connections_max`, or fewer if too few descriptors
// would stay free for other files. First raises the process's soft limit on descriptors to its hard
// limit.
std::size_t ConnectionsWithin(std::size_t connections_max);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_CONNECTION_LISTENER_H_
