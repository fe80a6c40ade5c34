#ifndef SOFTLOOKUP_TESTS_CORE_REPLICATION_SIMULATION_H_
#define SOFTLOOKUP_TESTS_CORE_REPLICATION_SIMULATION_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "softlookup/peers.h"

namespace softlookup::testing {

// What happened in one history.
struct HistoryReport {
  std::vector<std::string> violations;  // Of the invariants; empty if all held.
  std::int64_t proposed = 0;
  std::int64_t acknowledged = 0;
  std::int64_t unknown = 0;  // Proposals whose outcome the client does not know.
  std::int64_t refused = 0;
  std::int64_t elections = 0;  // Changes of the epoch.
  std::int64_t crashes = 0;
  std::int64_t stops = 0;  // Of processes that stood still for a while.
  std::int64_t config_changes = 0;
  std::int64_t seeded = 0;  // Replicas that had a gap, and got the records of another.
  EntryDigest last_entry;   // Covers all entries, so two histories hardly have the same.

  bool operator==(const HistoryReport&) const = default;
  // Adds a violation, unless there are many.
  void AddViolation(std::string what);
  // Adds the numbers and violations of another history.
  void Add(const HistoryReport& other);
};
std::ostream& operator<<(std::ostream& out, const HistoryReport& report);

// Runs a group of three replicas, two copies, a simulated etcd, network, disks and clock for a
// minute or some of simulated time on this thread, and checks the invariants of
// docs/decisions/0026. Messages are lost, doubled, late and reordered; etcd loses answers after it
// has made a transaction, makes transactions late, is slow in some histories, ends leases early and
// late, and gives old reads; disks refuse entries; replicas crash, lose what was not synced, stand
// still, and are cut off. The same seed gives the same history.
HistoryReport RunHistory(std::uint64_t seed);

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CORE_REPLICATION_SIMULATION_H_
