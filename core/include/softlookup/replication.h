#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_REPLICATION_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_REPLICATION_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "softlookup/etcd.h"

namespace softlookup {

// Which replica a process is. A group is one or more replicas with the same data, of which etcd
// knows under the name of the cluster and that of the group.
struct ReplicaName {
  std::string cluster;
  std::string group;
  std::string node;

  bool operator==(const ReplicaName&) const = default;
};

// The one thread on which a replica speaks to etcd.
class ReplicaThread {
 public:
  virtual ~ReplicaThread() = default;

  // Has the thread run `task`, after all that were posted before. Does not wait. Thread-safe.
  virtual void Post(absl::AnyInvocable<void()> task) = 0;

  // Call the next functions on this thread only.

  virtual Etcd& etcd() = 0;
  // Says what keeps etcd from answering, for the operator alone. Empty if it answers, or has done
  // so within some seconds.
  virtual std::string etcd_trouble() const = 0;
  // From now on calls `tick` about ten times a second. Call this once.
  virtual void SetTick(absl::AnyInvocable<void()> tick) = 0;
  // Calls `on_change` soon after each change of `key` in etcd. Can miss changes. Call this once.
  virtual void Watch(std::string key, absl::AnyInvocable<void()> on_change) = 0;
  // Makes no call of `tick`, of `on_change` or of a callback of etcd() afterwards. Leases that were
  // revoked before are still revoked, if etcd answers soon. etcd() must not be called any more.
  virtual void Close() = 0;
};

struct ReplicationStats {
  bool is_primary = false;
  std::uint64_t epoch = 0;          // The largest that this replica has seen.
  std::uint64_t applied_entry = 0;  // Sequence of the last entry that it has applied.
};

struct ReplicationOptions {
  ReplicaName name;
  // Called once, on the replica's thread, if the replica can never serve again: its directory does
  // not have what etcd says that it has. It must be quick, and must not call the engine.
  std::function<void(const absl::Status&)> on_failure;
};

// The part of an engine that makes it a replica. Thread-safe.
class Replication {
 public:
  virtual ~Replication() = default;

  // Waits until this replica is the primary of its group and has applied all that was committed.
  // DEADLINE_EXCEEDED after `timeout`: the message, for the operator alone, says what it waits for.
  // Another error is failure().
  virtual absl::Status AwaitPrimary(absl::Duration timeout) = 0;
  virtual ReplicationStats stats() const = 0;
  // Returns why this replica can never serve again, because etcd and the data directory do not fit.
  // OK if it can.
  virtual absl::Status failure() const = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_REPLICATION_H_
