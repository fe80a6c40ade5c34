#ifndef SOFTLOOKUP_TESTS_CORE_REPLICATION_SIMULATED_STORE_H_
#define SOFTLOOKUP_TESTS_CORE_REPLICATION_SIMULATED_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/check.h"
#include "core/replication/entry_store.h"
#include "tests/core/replication/event_loop.h"

namespace softlookup::testing {

// A disk, which outlives the processes of its node.
class SimulatedStore final : public EntryStore {
 public:
  using OnApply = std::function<void(const Entry&)>;

  SimulatedStore(EventLoop& loop, OnApply on_apply) : loop_(loop), on_apply_(std::move(on_apply)) {}

  // How likely the disk is to refuse an entry.
  double refused = 0;

  absl::Status Stage(const Entry& entry) override {
    const bool is_refused = refused > 0 && loop_.Happens(refused);
    if (is_refused && loop_.Happens(0.5)) return Refusal();
    staged_[{entry.sequence, entry.epoch}] = entry;
    // The bytes may be there, though the sync has failed.
    return is_refused ? Refusal() : absl::OkStatus();
  }
  std::optional<Entry> Staged(std::uint64_t sequence, std::uint64_t epoch) const override {
    const auto found = staged_.find({sequence, epoch});
    return found == staged_.end() ? std::nullopt : std::optional(found->second);
  }
  absl::StatusOr<Entry> Find(std::uint64_t sequence, const EntryDigest& digest) const override {
    for (auto at = staged_.lower_bound({sequence, 0});
         at != staged_.end() && at->first.first == sequence; ++at) {
      if (at->second.digest == digest) return at->second;
    }
    return absl::NotFoundError("no such entry");
  }
  absl::Status Apply(const Entry& entry) override {
    on_apply_(entry);
    SOFTLOOKUP_CHECK(entry.sequence == applied_.size() + 1) << "entry " << entry.sequence;
    applied_.push_back({.sequence = entry.sequence, .digest = entry.digest});
    return absl::OkStatus();
  }
  absl::Status Sync() override {
    synced_ = applied_.size();
    return absl::OkStatus();
  }
  void Trim(std::uint64_t sequence) override {
    staged_.erase(staged_.begin(), staged_.lower_bound({sequence, 0}));
  }
  bool is_ready() const override { return is_ready_; }
  void set_ready(bool ready) { is_ready_ = ready; }
  AppliedEntry applied() const override {
    return applied_.empty() ? AppliedEntry() : applied_.back();
  }

  // Loses some of what was not synced.
  void LosePower() {
    const auto lost = static_cast<std::int64_t>(applied_.size() - synced_);
    applied_.resize(applied_.size() - static_cast<std::size_t>(loop_.Below(lost + 1)));
    synced_ = applied_.size();
  }
  // Gets the records of another replica, which it has synced. Keeps its own staged entries: a
  // primary may count on them.
  void SeedFrom(SimulatedStore& other) {
    static_cast<void>(other.Sync());
    applied_ = other.applied_;
    staged_.insert(other.staged_.begin(), other.staged_.end());
    synced_ = applied_.size();
  }
  // Whether a power cut leaves the entry here, staged or applied.
  bool Keeps(std::uint64_t sequence, const EntryDigest& digest) const {
    if (Find(sequence, digest).ok()) return true;
    return HasSynced(sequence) && applied_[sequence - 1].digest == digest;
  }
  // Whether a power cut leaves the entry applied.
  bool HasSynced(std::uint64_t sequence) const { return sequence <= synced_; }

 private:
  static absl::Status Refusal() { return absl::UnavailableError("the disk refuses"); }

  EventLoop& loop_;
  const OnApply on_apply_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Entry> staged_;  // By sequence and epoch.
  std::vector<AppliedEntry> applied_;                                // From sequence 1.
  std::size_t synced_ = 0;  // How many of `applied_` outlive a power cut.
  bool is_ready_ = true;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CORE_REPLICATION_SIMULATED_STORE_H_
