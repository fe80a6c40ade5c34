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
#include "absl/container/flat_hash_set.h"
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
  // Ends the connection of `peer`, as gRPC names it, soon, if there still is one. Thread-safe.
  void Cut(const std::string& peer);
  // Accepts no more, and closes the port. Connections stay.
  void Stop();

 private:
  void Run();
  // False if the process is out of descriptors.
  bool AcceptFrom(int listener);
  void CutPeers();
  // Whether one more connection may be open.
  bool HasRoom();

  std::vector<FileDescriptor> listeners_;
  int port_ = 0;
  bool is_loopback_ = true;
  std::size_t connections_max_ = 0;
  absl::Duration peer_timeout_;
  Take take_;
  FileDescriptor wake_;  // Readable once the thread must end, or cut somebody.
  std::thread thread_;

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<std::string> to_cut_ ABSL_GUARDED_BY(mutex_);

  // The thread's. Connections that may be open: who took them does not tell when they close, but
  // then the descriptor is free or another socket's, with another inode.
  absl::flat_hash_map<int, ino_t> connections_;
  absl::Time next_count_ = absl::InfinitePast();
};

// How many connections to allow of `connections_max`, so that other files never find all
// descriptors taken. Raises the process's limit of them as far as it may.
std::size_t ConnectionsWithin(std::size_t connections_max);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_CONNECTION_LISTENER_H_
