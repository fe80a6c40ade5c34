#ifndef SOFTLOOKUP_SERVER_CLUSTER_SEEDING_H_
#define SOFTLOOKUP_SERVER_CLUSTER_SEEDING_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "server/cluster/peer_protocol.h"
#include "softlookup/replication.h"

namespace softlookup::server {

// If the data directory has no records, or SeedAgain() was called for it, and the group of the
// replica `name` has some, copies the primary's records into it. Waits for etcd and for the
// primary. A copy that was cut short goes on where it ended, also in a later process. If
// not `may_found`, also waits until the group is founded and has this node.
//
// CANCELLED soon after should_stop() returns true. FAILED_PRECONDITION if `may_found` and etcd does
// not have this node in the group, if the records are not of this group, or if the directory has
// other records than before the copy was begun. DIRECTORY_IN_USE if another process has the
// directory. UNAVAILABLE for errors of the disk, but not of those while the copy is made: it is
// made again.
absl::Status SeedIfNew(const std::string& data_directory, const ReplicaName& name,
                       const PeerOptions& peers, bool may_found, ReplicaThread& thread,
                       const std::function<bool()>& should_stop);

// Notes that the directory has fallen too far behind its group, so that the next start replaces it.
absl::Status SeedAgain(const std::string& data_directory);

// Whether a copy of another replica's records is in the directory and has not taken their place
// yet. Only SeedIfNew() may then change the directory.
bool HasUnfinishedSeed(const std::string& data_directory);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_CLUSTER_SEEDING_H_
