#ifndef SOFTLOOKUP_SERVER_ADMIN_CLUSTER_METHODS_H_
#define SOFTLOOKUP_SERVER_ADMIN_CLUSTER_METHODS_H_

#include <memory>

#include "absl/status/status.h"
#include "server/rpc/call.h"
#include "softlookup/replication.h"

namespace softlookup::server {

// The replica of a group that a server is.
struct GroupMember {
  Replication* replication = nullptr;  // Null: the server is no replica.
  ReplicaName name;
};

// Returns NO_CLUSTER if the server is no replica.
absl::Status CheckIsReplica(const GroupMember& member);
// Returns the status of a call for `error`, which is of Replication. `is_change`: the call is to
// change the group.
absl::Status ErrorOfGroup(const absl::Status& error, bool is_change);

// Each starts a call of a method of the Admin service that is about the group. The call deletes
// itself when it is over. `member`, and what it refers to, must outlive it. Replication may answer
// after the call is over, or never: a call ends without its answer when it is cancelled, when its
// deadline passes, when the server stops, and when the caller loses its rights.
void StartGetGroup(std::unique_ptr<Call> call, const GroupMember& member);
void StartAddReplica(std::unique_ptr<Call> call, const GroupMember& member);
void StartRemoveReplica(std::unique_ptr<Call> call, const GroupMember& member);
void StartMovePrimary(std::unique_ptr<Call> call, const GroupMember& member);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ADMIN_CLUSTER_METHODS_H_
