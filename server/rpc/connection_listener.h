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

// Accepts the connections of gRPC's clients and hands them over, up to a number of open ones: what
// comes beyond is closed at once. Goes on by itself after descriptors have run out.
//
// gRPC's own listener knows no such number, and stops for good when it finds no descriptor.
class ConnectionListener {
 public:
  // Takes a connected socket over, and closes it when the connection is over.
  using Take = std::function<void(int listener_fd, int fd)>;

  ConnectionListener() = default;
  ~ConnectionListener() { Stop(); }
  ConnectionListener(const ConnectionListener&) = delete;
  ConnectionListener& operator=(const ConnectionListener&) = delete;

  // Binds all addresses of `host` at `port` (0: any free one). UNAVAILABLE if one is taken.
  absl::Status Bind(const std::string& host, int port);
  int port() const { return port_; }
  // Whether only this machine can reach it.
  bool is_loopback() const { return is_loopback_; }

  // Accepts on a thread of its own, once. A peer that has not acknowledged what was sent to it for
  // `peer_timeout` is gone.
  absl::Status Start(std::size_t connections_max, absl::Duration peer_timeout, Take take);
  // Ends the connection of `peer`, as gRPC names it, and drops what came of it and was not read.
  // False if there is none. Thread-safe.
  bool Cut(const std::string& peer);
  // Accepts no more, and closes the port. Connections stay.
  void Stop();

 private:
  void Run();
  // False if the process is out of descriptors.
  bool AcceptFrom(int listener);
  // Whether one more connection may be open.
  bool HasRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::vector<FileDescriptor> listeners_;
  int port_ = 0;
  bool is_loopback_ = true;
  std::size_t connections_max_ = 0;
  absl::Duration peer_timeout_;
  Take take_;
  FileDescriptor wake_;  // Readable once the thread must end.
  std::thread thread_;

  // Who took a connection does not tell when it closes, but then the descriptor is free or another
  // socket's, with another inode.
  struct Connection {
    ino_t inode;
    std::string peer;
  };
  absl::Mutex mutex_;
  // Those that may be open, by descriptor.
  absl::flat_hash_map<int, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  absl::Time next_count_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

// How many connections to allow of `connections_max`, so that other files never find all
// descriptors taken. Raises the process's limit of them as far as it may.
std::size_t ConnectionsWithin(std::size_t connections_max);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_CONNECTION_LISTENER_H_
