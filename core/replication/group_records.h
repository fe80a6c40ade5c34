#ifndef SOFTLOOKUP_CORE_REPLICATION_GROUP_RECORDS_H_
#define SOFTLOOKUP_CORE_REPLICATION_GROUP_RECORDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "softlookup/peers.h"

namespace softlookup {

// What etcd holds about a group of replicas. The values are lines of text, so that `etcdctl get`
// shows what they say: "epoch=3 sequence=1042 digest=9f86... nonce=5c0e...". The Parse functions
// return DATA_LOSS for text that the Encode functions do not write.

// Returns the digest of the entry `bytes` that follows the entry with the digest `previous`. The
// first entry of a group follows an empty digest.
EntryDigest DigestOf(absl::string_view previous, std::uint64_t epoch, absl::string_view bytes);

// The last entry of a group that is committed. Two commit points that were ever written differ,
// because each has a nonce of its own. Transactions compare the whole value.
struct CommitPoint {
  std::uint64_t epoch = 0;     // Grows with each change of the primary.
  std::uint64_t sequence = 0;  // Number of the entry, from 1. 0: the group has no entry.
  EntryDigest digest;          // Of that entry. Empty if the group has no entry.
  std::string nonce;

  bool operator==(const CommitPoint&) const = default;
};
std::string EncodeCommitPoint(const CommitPoint& point);
absl::StatusOr<CommitPoint> ParseCommitPoint(absl::string_view text);

// The primary of a group. The key goes away with the lease of the node.
struct Primary {
  std::string node;
  std::string nonce;

  bool operator==(const Primary&) const = default;
};
std::string EncodePrimary(const Primary& primary);
absl::StatusOr<Primary> ParsePrimary(absl::string_view text);

// A committed entry, without its bytes.
struct Slot {
  std::uint64_t epoch = 0;
  std::uint64_t sequence = 0;
  EntryDigest previous;  // Of the entry before. Empty for the first entry.
  EntryDigest digest;
  std::uint64_t size = 0;            // Of the bytes.
  std::vector<std::string> holders;  // Nodes that had synced the bytes before they were committed.

  bool operator==(const Slot&) const = default;
};
std::string EncodeSlot(const Slot& slot);
absl::StatusOr<Slot> ParseSlot(absl::string_view text);

// The replicas of a group.
struct GroupConfig {
  std::uint64_t version = 0;          // Grows with each change.
  std::uint64_t copies = 0;           // Replicas that sync an entry before it is committed.
  std::vector<std::string> replicas;  // Names of nodes; at least `copies`.

  bool operator==(const GroupConfig&) const = default;
};
std::string EncodeGroupConfig(const GroupConfig& config);
absl::StatusOr<GroupConfig> ParseGroupConfig(absl::string_view text);

// The last entry that a replica has applied so that it outlives a power cut; 0 if none.
std::string EncodeApplied(std::uint64_t sequence);
absl::StatusOr<std::uint64_t> ParseApplied(absl::string_view text);

// Where a node is reached.
struct NodeRecord {
  std::string address;  // HOST:PORT at which it listens for other nodes.
  std::string group;    // Of which it is a replica. Empty: a node of an earlier version.

  bool operator==(const NodeRecord&) const = default;
};
std::string EncodeNode(const NodeRecord& node);
absl::StatusOr<NodeRecord> ParseNode(absl::string_view text);

// The keys of the records of all nodes of a cluster are in [begin, end). Each is the name of a node
// behind `begin`.
struct NodesRange {
  explicit NodesRange(absl::string_view cluster);

  std::string begin;
  std::string end;
};

// Which group a tenant belongs to.
struct TenantRecord {
  std::string group;

  bool operator==(const TenantRecord&) const = default;
};
std::string EncodeTenant(const TenantRecord& tenant);
absl::StatusOr<TenantRecord> ParseTenant(absl::string_view text);

// The keys of a cluster's tenants in etcd, which its groups share. No key changes or goes away once
// it is there.
class TenantKeys {
 public:
  explicit TenantKeys(absl::string_view cluster);

  std::string tenant(absl::string_view tenant) const;
  // The keys of all tenants are in [begin(), end()), and no others are.
  std::string begin() const { return prefix_; }
  std::string end() const;
  // Returns the tenant that has `key`, which must be one of those, as a view into `key`.
  absl::string_view TenantWith(absl::string_view key) const { return key.substr(prefix_.size()); }

 private:
  std::string prefix_;
};

// The keys of one group in etcd.
class GroupKeys {
 public:
  // Number of slots. The slot of an entry is overwritten by that of the entry kSlots later.
  static constexpr std::uint64_t kSlots = 16'384;

  // `slots` differs from kSlots in tests only.
  GroupKeys(absl::string_view cluster, absl::string_view group, std::uint64_t slots = kSlots);

  const std::string& group() const { return group_; }
  std::string config() const { return prefix_ + "config"; }
  std::string primary() const { return prefix_ + "primary"; }
  std::string commit_point() const { return prefix_ + "commit-point"; }
  std::string applied(absl::string_view node) const;
  // The record of a node. It stays when the node stops, as its address does.
  std::string node(absl::string_view node) const;
  // Written by a read that must see all that was committed before it.
  std::string barrier(absl::string_view node) const;
  std::string slot(std::uint64_t sequence) const;
  // The keys that change with each commit, and with each change of the primary or of the
  // configuration, are in [watched_begin(), watched_end()). The slots are, too, which change in the
  // same transactions.
  std::string watched_begin() const { return commit_point(); }
  std::string watched_end() const { return primary() + '\0'; }
  std::uint64_t slots() const { return slots_; }

 private:
  std::string group_;
  std::string nodes_prefix_;
  std::string prefix_;
  std::uint64_t slots_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_REPLICATION_GROUP_RECORDS_H_
