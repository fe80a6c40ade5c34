#ifndef SOFTLOOKUP_CORE_REPLICATION_PROPOSER_H_
#define SOFTLOOKUP_CORE_REPLICATION_PROPOSER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/random/random.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/replication/entry_store.h"
#include "core/replication/group_records.h"
#include "core/replication/resolved_txn.h"
#include "softlookup/etcd.h"
#include "softlookup/peers.h"

namespace softlookup {

// Makes a new nonce. Two calls of any processes never return the same.
using MakeNonce = absl::AnyInvocable<std::string()>;

// What a node leads: the values that it put into etcd when it became the primary.
struct TermOfPrimary {
  Primary primary;
  CommitPoint commit_point;
  GroupConfig config;
};

// Commits entries, one after another, while a node is the primary of a group. First `copies`
// replicas sync the entry. Then one transaction names it, and compares that the node still is the
// primary and that nothing was named since. A change of the configuration changes the commit point
// (config_change.h), so each entry has its copies on replicas of the configuration under which it
// is named. Not thread-safe.
class Proposer {
 public:
  // Gets OK once the entry is committed and applied here. UNAVAILABLE with HasUnknownOutcome() if
  // it may be committed, or be committed later. Other errors: it never is.
  using Done = absl::AnyInvocable<void(absl::Status)>;

  // All referred to must outlive this and all calls in progress.
  Proposer(std::string node, const GroupKeys& keys, absl::Duration give_up_after, Etcd& etcd,
           Peers& peers, EntryStore& store, const Clock& clock, MakeNonce& make_nonce);
  Proposer(const Proposer&) = delete;
  Proposer& operator=(const Proposer&) = delete;

  // The node has become the primary. The store has applied the entry of term.commit_point.
  void Begin(const TermOfPrimary& term);
  // The node is no longer the primary, or no longer sure of it. Ends all proposals.
  void End(absl::string_view why);
  // The epoch of the last term; 0 if there was none.
  std::uint64_t epoch() const { return term_.commit_point.epoch; }
  // Whether Begin() was called last.
  bool is_leading() const { return leading_; }

  // Takes over a configuration that was changed since, with the commit point that was changed with
  // it. Does nothing if they are not newer than those of the term.
  void Take(const GroupConfig& config, const CommitPoint& point);
  // Whether to name no further entry. One that is in progress may still be named.
  void SetHeld(bool held) {
    held_ = held;
    StageNext();
  }
  // Queues an entry. Must be called only while is_leading().
  void Propose(std::string bytes, Done done);
  // Goes on with what waits for time or for `applied`, the newest entries that replicas told to
  // have applied. Ends the term if an outcome stays unknown for too long.
  void Tick(const std::map<std::string, std::uint64_t>& applied);

 private:
  static constexpr absl::Duration kResendInterval = absl::Seconds(1);

  struct Proposal {
    std::string bytes;
    Done done;
    absl::Time begin;
  };

  // Begins to commit the first proposal, if none is in progress.
  void StageNext();
  // Has the replicas stage the entry in progress that have not said yet that they did.
  void SendToPeers();
  bool Holds(const std::string& node) const;
  // Names the entry in etcd, once enough replicas have it and its slot is free.
  void NameIfReady();
  void OnNamed(const EtcdTxnResult& result);
  // Takes over a configuration that was changed since the term began, or since the last change.
  // Returns false if etcd has another primary or another entry, or if this node is no replica any
  // more.
  bool Adopt(const EtcdTxnResult& result);
  bool SetConfig(const GroupConfig& config, const CommitPoint& point);
  bool IsReplica(const std::string& node) const;
  // Whether the slot of the next entry is free: enough replicas have told to have applied the entry
  // in it. This node counts only once it has told that, too: a power cut may undo what it applied.
  bool SlotIsFree() const;

  const std::string node_;
  const GroupKeys keys_;
  const absl::Duration give_up_after_;
  Peers& peers_;
  EntryStore& store_;
  const Clock& clock_;
  MakeNonce& make_nonce_;

  bool leading_ = false;
  bool held_ = false;
  bool has_refused_ = false;  // Whether the disk has refused the last entry.
  TermOfPrimary term_;
  std::map<std::string, std::uint64_t> applied_;  // By node.
  std::deque<Proposal> queue_;                    // The first one is in progress if `entry_` is.
  Entry entry_;                                   // In progress if entry_.sequence > 0.
  CommitPoint named_point_;                       // The commit point with `entry_`.
  std::vector<std::string> holders_;              // Replicas that have synced `entry_`.
  absl::Time next_send_;                          // When `entry_` is sent to the others again.
  ResolvedTxn naming_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_REPLICATION_PROPOSER_H_
