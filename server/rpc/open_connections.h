#ifndef SOFTLOOKUP_SERVER_RPC_OPEN_CONNECTIONS_H_
#define SOFTLOOKUP_SERVER_RPC_OPEN_CONNECTIONS_H_

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/file_descriptor.h"

namespace softlookup::server {

// Knows which connections of gRPC's clients are open, so that their number has a maximum and one of
// them can be cut. Thread-safe.
//
// gRPC does not report when it closes a connection, so this class keeps the inode of each socket.
// Once the connection is closed, its descriptor is free or belongs to a file or socket with another
// inode.
class OpenConnections {
 public:
  explicit OpenConnections(std::size_t connections_max) : connections_max_(connections_max) {}

  // What Accept() did: at most one of the members is set.
  struct Accepted {
    FileDescriptor socket{};
    int error = 0;  // The errno of accept(). 0: it did not fail.
  };
  // Accepts a connection from the socket `listener`, and counts it as open. If the maximum is
  // reached, closes the connection at once, and returns neither socket nor error.
  Accepted Accept(int listener);

  // Resets the connection of `peer`, an address as gRPC writes it. Bytes that gRPC has not read
  // from it yet are lost. Returns false if no such connection is open.
  bool Cut(const std::string& peer);

 private:
  struct Connection {
    ino_t inode;
    std::string peer;
  };

  // Whether one more connection may be open.
  bool MayAdd() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::size_t connections_max_;
  absl::Mutex mutex_;
  // By descriptor: the open connections, and those that gRPC has closed since the last check.
  absl::flat_hash_map<int, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  // MayAdd() does not look for closed connections before this time.
  absl::Time next_check_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

// Raises the process's soft limit on descriptors to its hard limit. Then returns the number of
// connections to allow: `connections_max`, or fewer if too few descriptors would stay free for
// other files.
std::size_t RaiseDescriptorLimitFor(std::size_t connections_max);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_OPEN_CONNECTIONS_H_
