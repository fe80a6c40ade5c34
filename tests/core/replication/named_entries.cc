#include "tests/core/replication/named_entries.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/core/replication/node_name.h"

namespace softlookup::testing {

bool NamedEntries::OnEtcdChange() {
  const std::optional<std::string> text = etcd_.Value(keys_.commit_point());
  if (!text.has_value() || text == commit_point_) return false;
  commit_point_ = *text;
  const auto point = ParseCommitPoint(*text);
  if (!point.ok()) {
    Violation(std::string(point.status().message()));
    return false;
  }
  if (point->epoch < epoch_) Violation("the epoch went back");
  const bool is_new_epoch = point->epoch > std::exchange(epoch_, point->epoch);
  if (point->sequence == all_.size()) {
    CheckCopies();
  } else if (point->sequence == all_.size() + 1) {
    Add(*point);
  } else {
    Violation(absl::StrCat("entry ", point->sequence, " after ", all_.size()));
  }
  return is_new_epoch;
}

void NamedEntries::Add(const CommitPoint& point) {
  const auto slot = ParseSlot(etcd_.Value(keys_.slot(point.sequence)).value_or(""));
  if (!slot.ok()) return Violation(std::string(slot.status().message()));
  const EntryDigest previous = all_.empty() ? "" : all_.back().digest;
  if (slot->sequence != point.sequence || slot->digest != point.digest ||
      slot->previous != previous || slot->epoch != point.epoch) {
    Violation(absl::StrCat("entry ", point.sequence, " does not follow the one before"));
  }
  all_.push_back(*slot);
  const std::optional<GroupConfig> config = TakeConfig();
  if (!config.has_value()) return;
  const std::uint64_t copies = CountCopies(*config, *slot);
  if (copies < config->copies) {
    Violation(absl::StrCat("entry ", point.sequence, " is named with ", copies, " copies"));
  }
  CheckOverwritten(*config);
}

std::optional<GroupConfig> NamedEntries::TakeConfig() {
  const auto config = ParseGroupConfig(etcd_.Value(keys_.config()).value_or(""));
  if (!config.ok()) {
    Violation(std::string(config.status().message()));
    return std::nullopt;
  }
  for (std::size_t node = 0; node < replica_since_.size(); ++node) {
    if (std::ranges::find(config->replicas, NodeName(node)) == config->replicas.end()) {
      replica_since_[node].reset();
    } else if (!replica_since_[node].has_value()) {
      replica_since_[node] = all_.size();
    }
  }
  return *config;
}

std::uint64_t NamedEntries::CountCopies(const GroupConfig& config, const Slot& slot) const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(config.replicas, [&](const std::string& node) {
        return stores_[NodeNumber(node)]->Keeps(slot.sequence, slot.digest);
      }));
}

void NamedEntries::CheckCopies() {
  const std::optional<GroupConfig> config = TakeConfig();
  if (!config.has_value()) return;
  for (const Slot& slot : all_) {
    const std::uint64_t copies = CountCopies(*config, slot);
    if (copies < config->copies) {
      return Violation(absl::StrCat("entry ", slot.sequence, " is on ", copies,
                                    " replicas of version ", config->version));
    }
  }
}

void NamedEntries::CheckOverwritten(const GroupConfig& config) {
  if (all_.size() <= keys_.slots()) return;
  const std::uint64_t overwritten = all_.size() - keys_.slots();
  const auto synced = std::ranges::count_if(config.replicas, [&](const std::string& node) {
    return stores_[NodeNumber(node)]->HasSynced(overwritten);
  });
  if (static_cast<std::uint64_t>(synced) < config.copies) {
    Violation(absl::StrCat("the slot of entry ", overwritten, " is overwritten, which ", synced,
                           " replicas have synced"));
  }
}

void NamedEntries::CheckApplied(int node, const Entry& entry) {
  const std::uint64_t applied = stores_[node]->applied().sequence;
  if (entry.sequence != applied + 1) {
    Violation(absl::StrCat(NodeName(node), " applies entry ", entry.sequence, " after ", applied));
  } else if (entry.sequence > all_.size() || all_[entry.sequence - 1].digest != entry.digest) {
    Violation(absl::StrCat(NodeName(node), " applies entry ", entry.sequence,
                           ", which is not the one that is named"));
  }
  if (DigestOf(entry.previous, entry.epoch, entry.bytes) != entry.digest) {
    Violation("bytes of another digest");
  }
}

void NamedEntries::CheckSeeding(int node) {
  const std::uint64_t next = stores_[node]->applied().sequence + 1;
  if (next > replica_since_[node].value_or(next) && next + keys_.slots() > all_.size()) {
    Violation(absl::StrCat(NodeName(node), " is seeded, and needs entry ", next, " of ",
                           all_.size(), " only, which the replicas must keep for it"));
  }
}

}  // namespace softlookup::testing
