#include "tests/core/replication/proposal_ledger.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace softlookup::testing {

std::string ProposalLedger::Propose(int node, int incarnation) {
  const std::string bytes = absl::StrCat("entry ", ++report_.proposed);
  proposals_[bytes] = {.node = node, .incarnation = incarnation};
  return bytes;
}

void ProposalLedger::OnOutcome(const std::string& bytes, const absl::Status& status) {
  Proposal& proposal = proposals_.at(bytes);
  if (proposal.outcome != Proposal::Outcome::kNone) {
    report_.AddViolation("two outcomes of one proposal");
  }
  if (status.ok()) {
    ++report_.acknowledged;
    proposal.outcome = Proposal::Outcome::kAcknowledged;
  } else if (HasUnknownOutcome(status)) {
    ++report_.unknown;
    proposal.outcome = Proposal::Outcome::kUnknown;
  } else {
    ++report_.refused;
    proposal.outcome = Proposal::Outcome::kRefused;
  }
}

bool ProposalLedger::HasOpenProposal(std::span<const int> incarnations) const {
  return std::ranges::any_of(proposals_, [&](const auto& named) {
    const Proposal& proposal = named.second;
    return proposal.outcome == Proposal::Outcome::kNone &&
           proposal.incarnation == incarnations[static_cast<std::size_t>(proposal.node)];
  });
}

void ProposalLedger::CheckOutcomes(const std::vector<Slot>& named) const {
  std::map<std::string, int> times;  // How often each proposal is among the named entries.
  for (const Slot& slot : named) {
    const auto found = bytes_of_.find(slot.digest);
    if (found == bytes_of_.end()) {
      report_.AddViolation(absl::StrCat("nobody has applied entry ", slot.sequence));
    } else {
      ++times[found->second];
    }
  }
  for (const auto& [bytes, proposal] : proposals_) {
    const int count = times[bytes];
    if (count > 1) report_.AddViolation(absl::StrCat(bytes, " is there ", count, " times"));
    if (proposal.outcome == Proposal::Outcome::kAcknowledged && count != 1) {
      report_.AddViolation(absl::StrCat(bytes, " was acknowledged and is lost"));
    }
    if (proposal.outcome == Proposal::Outcome::kRefused && count != 0) {
      report_.AddViolation(absl::StrCat(bytes, " was refused and is there"));
    }
  }
}

}  // namespace softlookup::testing
