#ifndef SOFTLOOKUP_TESTS_CORE_REPLICATION_PROPOSAL_LEDGER_H_
#define SOFTLOOKUP_TESTS_CORE_REPLICATION_PROPOSAL_LEDGER_H_

#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/replication/group_records.h"
#include "softlookup/peers.h"
#include "tests/core/replication/simulation.h"

namespace softlookup::testing {

// What clients have proposed, what they were told of it, and whether that was true.
class ProposalLedger {
 public:
  // Violations and counts go into `report`, which must outlive this.
  explicit ProposalLedger(HistoryReport& report) : report_(report) {}

  // Notes that a client proposes an entry to a node, in this process of its, and returns the bytes
  // of the entry. No two entries have the same.
  std::string Propose(int node, int incarnation);
  // Notes what the client is told.
  void OnOutcome(const std::string& bytes, const absl::Status& status);
  // Notes the bytes of an entry that some node applies.
  void OnApply(const Entry& entry) { bytes_of_[entry.digest] = entry.bytes; }
  // Whether a process has a proposal that it may still commit. `incarnations` has the process that
  // each node runs now.
  bool HasOpenProposal(std::span<const int> incarnations) const;
  // Checks the outcomes, once no entry is named any more. `named` has all that were.
  void CheckOutcomes(const std::vector<Slot>& named) const;

 private:
  struct Proposal {
    enum class Outcome { kNone, kAcknowledged, kUnknown, kRefused } outcome = Outcome::kNone;
    int node = 0;         // Which was asked,
    int incarnation = 0;  // in this process of its.
  };

  HistoryReport& report_;
  std::map<EntryDigest, std::string> bytes_of_;  // Of applied entries.
  std::map<std::string, Proposal> proposals_;    // By their bytes.
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CORE_REPLICATION_PROPOSAL_LEDGER_H_
