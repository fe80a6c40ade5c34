#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_REPLICATION_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_REPLICATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "softlookup/etcd.h"
#include "softlookup/peers.h"

namespace softlookup {

// Which replica a process is. A group is one or more replicas with the same data, of which etcd
// knows under the name of the cluster and that of the group.
struct ReplicaName {
  std::string cluster;
  std::string group;
  std::string node;

  bool operator==(const ReplicaName&) const = default;
};

// The one thread on which a replica speaks to etcd and to the other replicas.
class ReplicaThread {
 public:
  virtual ~ReplicaThread() = default;

  // Has the thread run `task`, after all that were posted before. Does not wait. Thread-safe.
  virtual void Post(absl::AnyInvocable<void()> task) = 0;

  // Call the next functions on this thread only.

  virtual Etcd& etcd() = 0;
  virtual Peers& peers() = 0;
  // Says that etcd does not answer or takes no writes, and why, for the operator alone. Empty if
  // neither has lasted for some seconds.
  virtual std::string etcd_trouble() const = 0;
  // From now on calls `tick` about ten times a second. Call this once.
  virtual void SetTick(absl::AnyInvocable<void()> tick) = 0;
  // Calls `on_change` soon after each change of a key in [begin, end) in etcd. Can miss changes.
  // Call this once.
  virtual void Watch(std::string begin, std::string end, OnEtcdChange on_change) = 0;
  // Makes no call of `tick`, of `on_change` or of a callback of etcd() and peers() afterwards.
  // Leases that were revoked before are still revoked, if etcd answers soon. etcd() and peers()
  // must not be called any more.
  virtual void Close() = 0;
};

struct ReplicationStats {
  bool is_primary = false;
  std::string primary_node;         // As etcd last said. Empty: none, or not known.
  bool has_primary = false;         // Whether the group has a primary, as far as etcd answers.
  std::uint64_t epoch = 0;          // The largest that this replica has seen.
  std::uint64_t applied_entry = 0;  // Sequence of the last entry that it has applied.
  std::uint64_t last_entry = 0;     // The last that was committed, as etcd last said.
};

// What etcd says of a group, as a replica has read it within some seconds.
struct GroupStatus {
  struct Node {
    std::string name;
    std::string address;              // Empty: it has told none.
    std::uint64_t applied_entry = 0;  // That it has told to have applied and synced.
  };

  std::string primary;           // Empty: there is none.
  std::uint64_t epoch = 0;       // Grows with each change of the primary.
  std::uint64_t last_entry = 0;  // That is committed.
  std::uint64_t copies = 0;      // Replicas that must sync an entry before it is committed.
  std::vector<Node> replicas;
};

struct ReplicationOptions {
  ReplicaName name;
  // Called once, on the replica's thread, if the replica can never serve again: its directory does
  // not have what etcd says that it has. OUT_OF_RANGE: it is too far behind its group, and can
  // begin anew on an empty directory. It must be quick, and must not call the engine.
  std::function<void(const absl::Status&)> on_failure;
  // By how many entries a replica may be behind the group before it must begin anew. 0: 16,384, as
  // everywhere but in tests. All replicas of a group must have the same.
  std::uint64_t slots = 0;
};

// The part of an engine that makes it a replica. Thread-safe.
class Replication : public PeerRequests {
 public:
  // Tells the group the HOST:PORT at which other replicas reach this one. Call this once.
  virtual void Advertise(std::string address) = 0;
  // Waits until this replica has all that its group had committed when it started, and is the
  // primary or knows of another one. DEADLINE_EXCEEDED after `timeout`: the message, for the
  // operator alone, says what it waits for. Another error is failure().
  virtual absl::Status AwaitReady(absl::Duration timeout) = 0;
  virtual ReplicationStats stats() const = 0;
  // Tells what is known of the group. UNAVAILABLE if etcd has not answered yet.
  virtual void GetGroup(absl::AnyInvocable<void(absl::StatusOr<GroupStatus>)> done) = 0;

  // The next three are for the primary. FAILED_PRECONDITION elsewhere: the message names the
  // primary. Writes wait for some seconds at most while the replicas change.
  //
  // Makes `node` a replica of the group. It then has to be started, and gets what it lacks.
  virtual void AddReplica(std::string node, absl::AnyInvocable<void(absl::Status)> done) = 0;
  // Makes `node` no replica of the group any more. FAILED_PRECONDITION if it is the primary.
  virtual void RemoveReplica(std::string node, absl::AnyInvocable<void(absl::Status)> done) = 0;
  // Lets another replica become the primary.
  virtual void StepDown(absl::AnyInvocable<void(absl::Status)> done) = 0;

  // Has etcd note that `tenant` belongs to this group (TenantOf()), if it belongs to none.
  // TENANT_ELSEWHERE if it belongs to another one, TOO_MANY_TENANTS if it is one too many in the
  // cluster. STORAGE_FAILED, with the advice to try again, if this replica is not the primary or
  // if etcd has not answered within some seconds. A write that gives a store its name does this by
  // itself. At most some dozen calls should wait at a time.
  virtual void ClaimTenant(std::string tenant, absl::AnyInvocable<void(absl::Status)> done) = 0;

  // Returns why this replica can never serve again, because etcd and the data directory do not fit.
  // OK if it can.
  virtual absl::Status failure() const = 0;
};

// Another replica, of which a new one gets its records.
struct SeedSource {
  std::string node;
  std::string address;  // HOST:PORT at which it listens for other replicas.
};
// Asks etcd whether a replica without records needs those of another one. Waits for etcd. nullopt:
// no. UNAVAILABLE: not known yet; the message, for the operator alone, says why.
//
// `may_found`: the replica may found its group, and it is FAILED_PRECONDITION if the group is there
// and has no replica of this name. Otherwise that is UNAVAILABLE, and so is a group that is not
// founded yet.
absl::StatusOr<std::optional<SeedSource>> FindSeedSource(const ReplicaName& name, bool may_found,
                                                         ReplicaThread& thread);
// Makes the records in `directory`, which PeerRequests::CopyRecordsTo() made at another replica of
// the group, those of the replica `name`. FAILED_PRECONDITION if they are not of that group.
absl::Status AdoptSeed(const ReplicaName& name, const std::string& directory);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_REPLICATION_H_
