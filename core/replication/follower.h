#ifndef SOFTLOOKUP_CORE_REPLICATION_FOLLOWER_H_
#define SOFTLOOKUP_CORE_REPLICATION_FOLLOWER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/replication/entry_store.h"
#include "core/replication/group_records.h"
#include "softlookup/etcd.h"
#include "softlookup/peers.h"

namespace softlookup {

// What a read of etcd showed of a group. It may be old.
struct GroupView {
  std::optional<GroupConfig> config;  // nullopt: the group was not made yet.
  std::string config_text;            // As etcd has it, for comparisons.
  std::optional<Primary> primary;
  std::optional<CommitPoint> commit_point;
  std::string commit_point_text;  // As etcd has it.
  // By node of `config`; absent: it has told none.
  std::map<std::string, std::uint64_t> applied;
  std::map<std::string, std::string> addresses;  // By node of `config`; absent: it has told none.
  std::int64_t revision = 0;                     // Of etcd, as it was read.
};

// Reads what a group has committed, and applies it to the records of one replica. Not thread-safe.
class Follower {
 public:
  // `etcd`, `peers` and `store` must outlive this and all calls in progress.
  Follower(std::string node, const GroupKeys& keys, Etcd& etcd, Peers& peers, EntryStore& store)
      : node_(std::move(node)), keys_(keys), etcd_(etcd), peers_(peers), store_(store) {}
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // A primary applies its entries itself.
  enum class Applies : bool { kNo, kYes };
  // Whether one member of etcd may say what it has, or the majority has to agree on what is the
  // newest. That takes etcd several times as much work.
  enum class Reads : bool { kFromOneMember, kFromMajority };

  // Reads etcd, applies the entries that follow the applied one, and calls on_view(). Does nothing
  // if the last poll goes on, or once has_gap().
  void Poll(Applies applies, Reads reads, absl::AnyInvocable<void(const GroupView&)> on_view);

  bool is_polling() const { return on_view_ != nullptr; }
  // Goes on with a poll that has waited for EntryStore::is_ready().
  void Resume() {
    if (on_view_ != nullptr && std::exchange(waits_, false)) ApplyNext();
  }

  // Ends the poll in progress, without on_view(). What it has read is not applied any more.
  void Abandon() {
    on_view_ = nullptr;
    waits_ = false;
    ++poll_;
  }

  // True once a slot that must be read was overwritten, or an entry does not follow the applied
  // one. The replica must then be seeded anew, and must serve nothing before.
  bool has_gap() const { return !gap_.ok(); }
  // Says what is wrong; OK if nothing is. OUT_OF_RANGE: the replica is too far behind, and all that
  // it has is elsewhere, too.
  const absl::Status& gap() const { return gap_; }

 private:
  // How many slots are read at a time, at most.
  static constexpr std::uint64_t kSlotsPerPoll = 16;
  // How many of entries of which the last view did not know yet: most polls find one.
  static constexpr std::uint64_t kNewSlots = 2;

  // Returns how many slots the next poll reads.
  std::uint64_t SlotsToRead(Applies applies) const;

  void OnRead(Applies applies, const std::vector<std::string>& nodes, std::uint64_t first,
              absl::StatusOr<EtcdTxnResult> result);
  // Applies slots_[next_] and those after it, as far as their bytes are at hand.
  void ApplyNext();
  // Asks replica after replica for the bytes of `slot`. `asked` were asked before; `was_trimmed`
  // says whether one of them has applied the entry and no longer has its bytes.
  void Fetch(const Slot& slot, std::size_t asked, bool was_trimmed);
  void Take(const Slot& slot, std::string bytes);
  void End();

  const std::string node_;
  const GroupKeys keys_;
  Etcd& etcd_;
  Peers& peers_;
  EntryStore& store_;

  // The poll in progress. `on_view_` is null if there is none.
  absl::AnyInvocable<void(const GroupView&)> on_view_;
  int poll_ = 0;  // Its number. Answers to another number come too late.
  GroupView view_;
  std::vector<Slot> slots_;  // Those to apply, in order.
  std::size_t next_ = 0;
  bool waits_ = false;  // For the store to be ready.

  std::vector<std::string> replicas_;  // Of the last view; their applied entries are read.
  absl::Status gap_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_REPLICATION_FOLLOWER_H_
