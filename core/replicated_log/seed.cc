#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "core/base/status_macros.h"
#include "core/replicated_log/replica_directory.h"
#include "core/replication/group_records.h"
#include "core/storage/commit_log.h"
#include "softlookup/etcd.h"
#include "softlookup/replication.h"

namespace softlookup {
namespace {

// Waits for one transaction. UNAVAILABLE if etcd does not answer.
absl::StatusOr<EtcdTxnResult> RunAndWait(EtcdTxn txn, ReplicaThread& thread) {
  absl::StatusOr<EtcdTxnResult> result;
  absl::Notification done;
  thread.Post([&] {
    thread.etcd().Run(std::move(txn), [&](absl::StatusOr<EtcdTxnResult> answer) {
      result = std::move(answer);
      done.Notify();
    });
  });
  done.WaitForNotification();
  if (!result.ok()) return absl::UnavailableError(result.status().message());
  return result;
}

}  // namespace

absl::StatusOr<std::optional<SeedSource>> FindSeedSource(const ReplicaName& name, bool may_found,
                                                         ReplicaThread& thread) {
  const GroupKeys keys(name.cluster, name.group);
  absl::BitGen random;
  // A transaction that only reads can have an old answer, so this one puts something.
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      const EtcdTxnResult read,
      RunAndWait(
          {.compares = {},
           .puts = {{keys.barrier(name.node), absl::StrCat(absl::Uniform<std::uint64_t>(random))}},
           .reads = {keys.config(), keys.primary(), keys.commit_point()}},
          thread));
  const bool has_config = read.values[0].has_value(), has_point = read.values[2].has_value();
  if (!may_found && !has_config && !has_point) {
    return absl::UnavailableError("no node has founded the group yet");
  }
  if (!has_config || (may_found && !has_point)) return std::nullopt;
  SOFTLOOKUP_ASSIGN_OR_RETURN(const GroupConfig config, ParseGroupConfig(*read.values[0]));
  if (std::ranges::find(config.replicas, name.node) == config.replicas.end()) {
    const std::string why = absl::StrCat(
        "node ", name.node, " is no replica of this group, whose replicas are ",
        absl::StrJoin(config.replicas, ", "), "; add it first: softlookup cluster add ", name.node);
    if (may_found) return absl::FailedPreconditionError(why);
    return absl::UnavailableError(why);
  }
  if (config.replicas.size() == 1 || !has_point) return std::nullopt;
  // Only the primary is sure to have all that is committed. Without one of these entries, this
  // replica could be one of those that etcd counts on to have it.
  if (!read.values[1].has_value()) return absl::UnavailableError("the group has no primary now");
  SOFTLOOKUP_ASSIGN_OR_RETURN(const Primary primary, ParsePrimary(*read.values[1]));
  if (primary.node == name.node) {
    return absl::UnavailableError("the lease that this node had as the primary has not ended yet");
  }
  // What this node has told before is not on its disk any more.
  SOFTLOOKUP_ASSIGN_OR_RETURN(const EtcdTxnResult node,
                              RunAndWait({.compares = {},
                                          .puts = {{keys.applied(name.node), EncodeApplied(0)}},
                                          .reads = {keys.node(primary.node)}},
                                         thread));
  if (!node.values[0].has_value()) {
    return absl::UnavailableError(absl::StrCat("node ", primary.node, " has told no address"));
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(const NodeRecord record, ParseNode(*node.values[0]));
  return SeedSource{.node = primary.node, .address = record.address};
}

absl::Status AdoptSeed(const ReplicaName& name, const std::string& directory) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::unique_ptr<CommitLog> log, OpenCommitLog(directory));
  return AdoptDirectory(name, *log);
}

}  // namespace softlookup
