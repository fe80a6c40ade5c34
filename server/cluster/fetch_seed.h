#ifndef SOFTLOOKUP_SERVER_CLUSTER_FETCH_SEED_H_
#define SOFTLOOKUP_SERVER_CLUSTER_FETCH_SEED_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/cluster/peer_protocol.h"

namespace softlookup::server {

// Fetches a copy of the records of `to_node`, whose PeerServer is at `address`, into `directory`,
// whose parent must exist. When this returns OK, the files in it are those of the copy. They are on
// the disk, and have the sizes and checksums that the other replica has said.
//
// If the call is cut short, what has come is left in `directory`, and the next FetchSeed() goes on
// from there, also if it fetches from another replica or in another process. All other files in the
// directory are removed. After an error of the disk or of the copy itself there is no `directory`.
//
// Blocks for minutes, or hours. CANCELLED within a second after should_stop() returns true; it is
// called on this thread, several times a second. UNAVAILABLE if the other replica cannot be
// reached, and DATA_LOSS if files are not as it has said. RESOURCE_EXHAUSTED and others for errors
// of this machine's disk. Else the error that the other replica returns.
absl::Status FetchSeed(const std::string& address, const PeerOptions& options,
                       const std::string& to_node, const std::string& directory,
                       absl::FunctionRef<bool()> should_stop);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_CLUSTER_FETCH_SEED_H_
