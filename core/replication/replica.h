#ifndef SOFTLOOKUP_CORE_REPLICATION_REPLICA_H_
#define SOFTLOOKUP_CORE_REPLICATION_REPLICA_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/replication/entry_store.h"
#include "core/replication/follower.h"
#include "core/replication/group_records.h"
#include "core/replication/lease_keeper.h"
#include "core/replication/membership.h"
#include "core/replication/proposer.h"
#include "core/replication/resolved_txn.h"
#include "softlookup/etcd.h"
#include "softlookup/peers.h"

namespace softlookup {

struct ReplicaOptions {
  std::string node;
  GroupKeys keys;
  std::string address;  // HOST:PORT at which other nodes reach this one. Empty: nowhere.
  absl::Duration lease_ttl = absl::Seconds(6);
  // How long the outcome of an entry may stay unknown before the node stops leading.
  absl::Duration give_up_after = absl::Seconds(10);
  absl::Duration poll_interval = absl::Seconds(1);
};

// One replica of a group. etcd decides which replica is the primary, in which order entries come,
// and which are committed; the bytes of entries go from replica to replica. No time and no lease
// decides what is committed, only comparisons of values in etcd. Not thread-safe: all calls, also
// the callbacks of Etcd and Peers, must come on one thread.
class Replica {
 public:
  // All referred to must outlive the replica and all calls in progress.
  Replica(const ReplicaOptions& options, Etcd& etcd, Peers& peers, EntryStore& store,
          const Clock& clock, MakeNonce make_nonce);
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  // Does what is due. Call it about ten times a second.
  void Tick();
  // Tells etcd the address at which other nodes reach this one.
  void Advertise(std::string address) {
    options_.address = std::move(address);
    has_told_address_ = false;
  }
  // Reads etcd now, instead of at the next poll: something has changed there, which is seen at
  // `revision`, if that is not 0. A primary knows of its own entries, and reads etcd once in a
  // while only.
  void Wake(std::int64_t revision = 0);
  // Call this once EntryStore::is_ready() is true again.
  void Resume() { follower_.Resume(); }
  // Stops leading, so that another replica can lead at once.
  void Resign(absl::string_view why);

  // Stops leading, and stands for primary again only after some time, so that another replica is
  // first. FAILED_PRECONDITION if this is not the primary, or the only replica.
  absl::Status StepDown();

  // Returns OK if this replica is the primary, and the error of Propose() otherwise.
  absl::Status CheckPrimary() const;
  // Commits an entry. `done` gets OK once it is committed, and applied here. If
  // HasUnknownOutcome() holds for an error, the entry may be committed; otherwise it never is.
  void Propose(std::string bytes, Proposer::Done done);
  // Asks etcd for the commit point. `done` gets the sequence of the last entry that was committed
  // before the call, or of a later one. This replica may not have it yet.
  void ReadCommitPoint(absl::AnyInvocable<void(absl::StatusOr<std::uint64_t>)> done);
  // `done` gets OK once this replica has applied all that was committed before the call.
  void Await(absl::AnyInvocable<void(absl::Status)> done);

  // Makes `node` a replica of the group, or no replica. FAILED_PRECONDITION if this replica is not
  // the primary. The other errors are those of Membership.
  void AddReplica(const std::string& node, Membership::Done done);
  void RemoveReplica(const std::string& node, Membership::Done done);

  // Another replica has this one sync an entry.
  absl::Status OnStage(const Entry& entry);
  // Another replica asks for the bytes of an entry. OUT_OF_RANGE if this one has applied it and no
  // longer has them.
  absl::StatusOr<std::string> OnFetch(std::uint64_t sequence, const EntryDigest& digest) const;

  bool is_primary() const { return proposer_.is_leading(); }
  // Whether the records of this replica may be read: it has all entries up to the applied one.
  bool may_serve() const { return gap().ok(); }
  // Says why the records may not be read; OK if they may.
  const absl::Status& gap() const { return follower_.gap(); }
  // What the last view of etcd showed.
  const GroupView& view() const { return view_; }
  // The node that etcd last said is the primary. Empty if it said that there is none, or nothing
  // yet.
  const std::string& primary_node() const { return primary_node_; }
  // Whether the configuration of the group was changed so that this node is no replica any more.
  bool has_left() const { return has_left_; }
  // The epoch of the last term of this node; 0 if it never was the primary.
  std::uint64_t term_epoch() const { return proposer_.epoch(); }
  // The largest epoch that was seen in etcd.
  std::uint64_t epoch() const { return epoch_; }

 private:
  // How long a node that has stepped down leaves the others the time to become the primary.
  static constexpr absl::Duration kRestTime = absl::Seconds(10);

  struct Barrier {
    std::uint64_t sequence = 0;  // To be applied.
    absl::AnyInvocable<void(absl::Status)> done;
  };

  void PollIfDue();
  void OnView(const GroupView& view);
  void TickMembership();
  // Returns a function that has the change read soon, and calls `done`.
  Membership::Done ReadAfter(Membership::Done done);
  absl::Status NotThePrimary() const;
  // Stands for primary, if the view says that there is none and that this replica has all entries.
  void StandIfVacant(const GroupView& view);
  void OnStood(const EtcdTxnResult& result);
  // Whether the last entry that this replica has applied is that of `point`.
  bool HasApplied(const CommitPoint& point) const;
  bool IsIn(const GroupConfig& config) const;
  // Trims entries that all replicas have applied.
  void Trim(const GroupView& view);
  void TellApplied();
  void TellAddress();
  // Takes over what the view says of the configuration. The view may be old.
  void NoteConfig(const GroupView& view);
  // Ends the calls of Await() whose entries are applied.
  void ServeBarriers();

  ReplicaOptions options_;
  Etcd& etcd_;
  EntryStore& store_;
  const Clock& clock_;
  MakeNonce make_nonce_;
  LeaseKeeper lease_;
  Follower follower_;
  Proposer proposer_;
  Membership membership_;

  absl::Time next_poll_ = absl::InfinitePast();
  // When a poll asks the majority of etcd's members. Polls before ask one.
  absl::Time next_majority_ = absl::InfinitePast();
  std::int64_t woken_at_ = 0;  // The largest revision that has woken this since the last such poll.
  std::uint64_t applied_before_poll_ = 0;        // As the poll in progress, or the last one, began.
  absl::Time next_told_ = absl::InfinitePast();  // When TellApplied() is due.
  std::uint64_t told_ = 0;                       // The applied entry that etcd was told last.
  std::uint64_t epoch_ = 0;                      // The largest that was seen in etcd.
  GroupView view_;                               // The last.
  std::string primary_node_;
  std::uint64_t config_version_ = 0;  // The largest that was seen.
  bool was_in_ = false;               // Whether some configuration had this node.
  bool has_left_ = false;             // Whether the newest one has not.
  bool has_told_address_ = false;
  bool is_telling_address_ = false;
  TermOfPrimary candidacy_;  // What this node becomes if standing_ succeeds.
  ResolvedTxn standing_;
  std::optional<std::int64_t> standing_lease_;     // That of the key that standing_ puts.
  absl::Time rests_until_ = absl::InfinitePast();  // Does not stand before.
  bool has_term_ = false;  // Whether etcd's key of the primary may have the lease of this node.
  std::vector<Barrier> barriers_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_REPLICATION_REPLICA_H_
