#ifndef SOFTLOOKUP_SERVER_CLUSTER_FETCH_SEED_H_
#define SOFTLOOKUP_SERVER_CLUSTER_FETCH_SEED_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/cluster/peer_protocol.h"

namespace softlookup::server {

// Fetches a copy of the records of `to_node`, whose PeerServer is at `address`, into `directory`.
// This must not exist, but its parent must. When this returns OK, the files in it are on the disk
// and have the sizes and checksums that the other replica has said. After an error there is no
// `directory`, unless there was one before.
//
// Blocks for minutes, or hours. CANCELLED within a second after should_stop() returns true; it is
// called on this thread, several times a second. UNAVAILABLE if the other replica cannot be
// reached, and DATA_LOSS if files are not as it has said. ALREADY_EXISTS, RESOURCE_EXHAUSTED and
// others for errors of this machine's disk. Else the error that the other replica returns.
absl::Status FetchSeed(const std::string& address, const PeerOptions& options,
                       const std::string& to_node, const std::string& directory,
                       absl::FunctionRef<bool()> should_stop);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_CLUSTER_FETCH_SEED_H_
