#ifndef SOFTLOOKUP_SERVER_CLUSTER_FILES_H_
#define SOFTLOOKUP_SERVER_CLUSTER_FILES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/cluster/etcd_client.h"
#include "server/cluster/peer_credentials.h"
#include "server/flags.h"

// What the flags of clusters say, with the contents of the files that they name. INVALID_ARGUMENT
// tells what is wrong with a file.
namespace softlookup::server {

// Returns how etcd's members are reached, and what this process shows to them.
absl::StatusOr<EtcdOptions> EtcdOptionsOf(const Flags& flags);
// Returns what nodes and routers show to each other, and what they check each other by.
absl::StatusOr<PeerPem> PemOfPeers(const Flags& flags);

// Returns the error of one of the above. OK if `flags` name no etcd.
absl::Status CheckClusterFiles(const Flags& flags);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_CLUSTER_FILES_H_
