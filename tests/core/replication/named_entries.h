#ifndef SOFTLOOKUP_TESTS_CORE_REPLICATION_NAMED_ENTRIES_H_
#define SOFTLOOKUP_TESTS_CORE_REPLICATION_NAMED_ENTRIES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/replication/group_records.h"
#include "softlookup/peers.h"
#include "tests/core/replication/simulated_etcd.h"
#include "tests/core/replication/simulated_store.h"
#include "tests/core/replication/simulation.h"

namespace softlookup::testing {

// The entries that etcd has named, and whether the replicas keep them as they must.
class NamedEntries {
 public:
  // Violations go into `report`. `stores` has that of each node. All referred to must outlive this.
  NamedEntries(const GroupKeys& keys, const SimulatedEtcd& etcd,
               std::span<const std::unique_ptr<SimulatedStore>> stores, HistoryReport& report)
      : keys_(keys), etcd_(etcd), stores_(stores), report_(report), replica_since_(stores.size()) {}

  // Takes a change of etcd over. Returns whether there is a new epoch.
  bool OnEtcdChange();
  // Checks an entry that a node is about to apply.
  void CheckApplied(int node, const Entry& entry);
  // Checks that the replicas need not keep the next entry for a node that is about to be seeded: it
  // has no slot any more, or was named before the node became a replica.
  void CheckSeeding(int node);

  // In their order, from sequence 1 on.
  const std::vector<Slot>& all() const { return all_; }

 private:
  void Violation(std::string what) { report_.AddViolation(std::move(what)); }
  // Takes over the next entry.
  void Add(const CommitPoint& point);
  // Notes which nodes are replicas now, and returns the configuration in etcd.
  std::optional<GroupConfig> TakeConfig();
  // Returns how many replicas keep an entry in a power cut.
  std::uint64_t CountCopies(const GroupConfig& config, const Slot& slot) const;
  // Whether enough replicas of the configuration keep each entry.
  void CheckCopies();
  // A replica that loses an applied entry in a power cut needs its slot to apply it again. So
  // enough replicas must have synced an entry before its slot is overwritten.
  void CheckOverwritten(const GroupConfig& config);

  const GroupKeys& keys_;
  const SimulatedEtcd& etcd_;
  const std::span<const std::unique_ptr<SimulatedStore>> stores_;
  HistoryReport& report_;
  std::vector<Slot> all_;
  std::string commit_point_;  // As etcd has it.
  std::uint64_t epoch_ = 0;
  // How many entries were named when each node became a replica. None: it is no replica.
  std::vector<std::optional<std::size_t>> replica_since_;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CORE_REPLICATION_NAMED_ENTRIES_H_
