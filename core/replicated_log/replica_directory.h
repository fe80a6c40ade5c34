#ifndef SOFTLOOKUP_CORE_REPLICATED_LOG_REPLICA_DIRECTORY_H_
#define SOFTLOOKUP_CORE_REPLICATED_LOG_REPLICA_DIRECTORY_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/replication/entry_store.h"
#include "core/storage/commit_log.h"
#include "softlookup/peers.h"
#include "softlookup/replication.h"

namespace softlookup {

// What a data directory says of the replica that it belongs to (docs/storage_format.md).
struct ReplicaRecord {
  ReplicaName name;
  // Whether etcd has had this node as a replica. If etcd then does not know the group any more, it
  // has lost what was committed, and must not be given a new group by itself.
  bool has_joined = false;
};
std::string EncodeReplica(const ReplicaRecord& record);
absl::StatusOr<ReplicaRecord> ParseReplica(absl::string_view value);

std::string EncodeAppliedEntry(const AppliedEntry& entry);
absl::StatusOr<AppliedEntry> ParseAppliedEntry(absl::string_view value);

// The value of a staged entry. Its key has its sequence and its epoch.
std::string EncodeEntry(const Entry& entry);
absl::StatusOr<Entry> ParseEntry(absl::string_view key, absl::string_view value);

// Returns the value of the record `key`; nullopt if there is none. The errors are those of
// CommitLog::Scan().
absl::StatusOr<std::optional<std::string>> ReadRecord(const CommitLog& log, const std::string& key);

// Makes the directory one of no replica. FAILED_PRECONDITION if it belongs to a replica that has
// joined its group: a server that does not run as that replica must not write to it.
absl::Status ReleaseDirectory(CommitLog& log);

// Makes the directory of `log` that of the replica `name`, unless it is that already. Records that
// a directory has from before become the entry 1, which `nonce` tells from all other groups' first
// entries. FAILED_PRECONDITION if the directory belongs to another replica that has joined its
// group. `nonce` was never used.
absl::StatusOr<ReplicaRecord> ClaimDirectory(const ReplicaName& name, absl::string_view nonce,
                                             CommitLog& log);
// Makes the directory of another replica of the group, which is a copy, that of the replica `name`,
// which etcd has as a replica. FAILED_PRECONDITION if it is not of that group.
absl::Status AdoptDirectory(const ReplicaName& name, CommitLog& log);
// Notes that etcd has this node as a replica, and syncs that.
absl::Status NoteJoined(const ReplicaName& name, CommitLog& log);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_REPLICATED_LOG_REPLICA_DIRECTORY_H_
