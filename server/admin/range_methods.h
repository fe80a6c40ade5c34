#ifndef SOFTLOOKUP_SERVER_ADMIN_RANGE_METHODS_H_
#define SOFTLOOKUP_SERVER_ADMIN_RANGE_METHODS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/admin/cluster_methods.h"
#include "server/rpc/call.h"
#include "softlookup/engine.h"

namespace softlookup::server {

// Returns the names of the replicas of the group that the server is in, in their order. Blocks.
absl::StatusOr<std::vector<std::string>> ReplicasOf(const GroupMember& member);

// Each starts a call of a method of the Admin service that is about the ranges of a store. The call
// deletes itself when it is over. `engine` and `member`, and what that refers to, must outlive it.
void StartSplitStore(std::unique_ptr<Call> call, Engine& engine, const GroupMember& member);
void StartMoveRange(std::unique_ptr<Call> call, Engine& engine, const GroupMember& member);
void StartGetRanges(std::unique_ptr<Call> call, Engine& engine, const GroupMember& member);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ADMIN_RANGE_METHODS_H_
