#include "core/replication/replica.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace softlookup {

Replica::Replica(const ReplicaOptions& options, Etcd& etcd, Peers& peers, EntryStore& store,
                 const Clock& clock, MakeNonce make_nonce)
    : options_(options),
      etcd_(etcd),
      store_(store),
      clock_(clock),
      make_nonce_(std::move(make_nonce)),
      lease_(etcd, clock, options.lease_ttl),
      follower_(options.node, options.keys, etcd, peers, store),
      proposer_(options.node, options.keys, options.give_up_after, etcd, peers, store, clock,
                make_nonce_),
      membership_(options.node, options.keys, etcd, clock, make_nonce_),
      standing_(etcd) {}

void Replica::Tick() {
  const absl::Time now = clock_.Now();
  lease_.Tick();
  // etcd takes no key of a lease that has ended. If an attempt was made before, its key ends with
  // the lease.
  if (standing_.is_running() && lease_.lease() != standing_lease_) standing_.Abandon();
  standing_.Tick();
  if (proposer_.is_leading() && !lease_.lease().has_value()) Resign("its lease in etcd has ended");
  TickMembership();
  proposer_.Tick(view_.applied);
  // The proposer may have ended the term. Its key in etcd lives as long as the lease.
  if (has_term_ && !proposer_.is_leading()) Resign("");
  ServeBarriers();
  if (now >= next_told_) TellApplied();
  TellAddress();
  PollIfDue();
}

void Replica::Wake(std::int64_t revision) {
  if (proposer_.is_leading()) return;
  woken_at_ = std::max(woken_at_, revision);
  next_poll_ = absl::InfinitePast();
  PollIfDue();
}

void Replica::PollIfDue() {
  const absl::Time now = clock_.Now();
  if (now < next_poll_ || follower_.is_polling()) return;
  auto reads = Follower::Reads::kFromOneMember;
  if (now >= next_majority_) {
    reads = Follower::Reads::kFromMajority;
    next_majority_ = now + options_.poll_interval;
    woken_at_ = 0;
  }
  next_poll_ = next_majority_;
  applied_before_poll_ = store_.applied().sequence;
  follower_.Poll(proposer_.is_leading() ? Follower::Applies::kNo : Follower::Applies::kYes, reads,
                 [this, woken_at = woken_at_](const GroupView& view) {
                   // The member does not have yet what has woken this replica.
                   if (view.revision < woken_at) next_poll_ = next_majority_ = absl::InfinitePast();
                   OnView(view);
                 });
}

void Replica::TickMembership() {
  if (!proposer_.is_leading()) return;
  if (view_.config.has_value() && view_.commit_point.has_value()) {
    membership_.Tick(*view_.config, view_.commit_point->sequence, view_.applied);
  }
  proposer_.SetHeld(membership_.is_changing());
}

void Replica::AddReplica(const std::string& node, Membership::Done done) {
  if (!proposer_.is_leading()) return done(NotThePrimary());
  membership_.Add(node, ReadAfter(std::move(done)));
}

void Replica::RemoveReplica(const std::string& node, Membership::Done done) {
  if (!proposer_.is_leading()) return done(NotThePrimary());
  membership_.Remove(node, ReadAfter(std::move(done)));
}

Membership::Done Replica::ReadAfter(Membership::Done done) {
  return [this, done = std::move(done)](absl::Status status) mutable {
    next_poll_ = next_majority_ = absl::InfinitePast();
    done(std::move(status));
  };
}

absl::Status Replica::NotThePrimary() const {
  return absl::FailedPreconditionError(
      primary_node_.empty() ? "the group has no primary now"
                            : absl::StrCat("node ", primary_node_, " is the primary of the group"));
}

void Replica::Resign(absl::string_view why) {
  has_term_ = false;
  membership_.End();
  proposer_.End(why);
  lease_.Revoke();
  Wake();
}

absl::Status Replica::StepDown() {
  if (!proposer_.is_leading()) return NotThePrimary();
  if (!view_.config.has_value() || view_.config->replicas.size() < 2) {
    return absl::FailedPreconditionError("the group has no other replica");
  }
  rests_until_ = clock_.Now() + kRestTime;
  Resign("the primary moves to another node");
  return absl::OkStatus();
}

absl::Status Replica::CheckPrimary() const {
  // The lease tells it even before Tick() is called.
  if (proposer_.is_leading() && lease_.lease().has_value()) return absl::OkStatus();
  constexpr absl::string_view kWhy = "this replica is not the primary of its group now";
  if (primary_node_.empty() || primary_node_ == options_.node) return WriteNotMade(kWhy);
  return WriteNotMade(absl::StrCat(kWhy, "; node ", primary_node_, " is"),
                      {{"primary", primary_node_}});
}

void Replica::Propose(std::string bytes, Proposer::Done done) {
  if (absl::Status status = CheckPrimary(); !status.ok()) return done(std::move(status));
  proposer_.Propose(std::move(bytes), std::move(done));
}

void Replica::ReadCommitPoint(absl::AnyInvocable<void(absl::StatusOr<std::uint64_t>)> done) {
  // A transaction that only reads can have an old answer, so this one puts something.
  etcd_.Run({.compares = {},
             .puts = {{options_.keys.barrier(options_.node), make_nonce_()}},
             .reads = {options_.keys.commit_point()}},
            [this, done = std::move(done)](absl::StatusOr<EtcdTxnResult> result) mutable {
              if (!result.ok()) return done(result.status());
              std::uint64_t sequence = 0;
              if (result->values[0].has_value()) {
                const absl::StatusOr<CommitPoint> point = ParseCommitPoint(*result->values[0]);
                if (!point.ok()) return done(point.status());
                sequence = point->sequence;
              }
              if (sequence > store_.applied().sequence) Wake(result->revision);
              done(sequence);
            });
}

void Replica::Await(absl::AnyInvocable<void(absl::Status)> done) {
  ReadCommitPoint([this, done = std::move(done)](absl::StatusOr<std::uint64_t> sequence) mutable {
    if (!sequence.ok()) return done(sequence.status());
    barriers_.push_back({.sequence = *sequence, .done = std::move(done)});
    ServeBarriers();
  });
}

absl::Status Replica::OnStage(const Entry& entry) {
  if (entry.epoch < epoch_) {
    return MakeError(reasons::kStorageFailed, "A later primary leads the group");
  }
  if (DigestOf(entry.previous, entry.epoch, entry.bytes) != entry.digest) {
    return MakeError(reasons::kMalformedMessage, "The digest of the entry is wrong");
  }
  if (entry.sequence <= store_.applied().sequence) {
    return MakeError(reasons::kStorageFailed, "The entry comes before one that is committed");
  }
  if (entry.sequence > store_.applied().sequence + options_.keys.slots()) {
    return MakeError(reasons::kStorageFailed, "This replica is too far behind the entry");
  }
  if (const auto staged = store_.Staged(entry.sequence, entry.epoch); staged.has_value()) {
    if (staged->digest == entry.digest) return absl::OkStatus();
    return MakeError(reasons::kStorageFailed, "Another entry of this sequence and epoch is here");
  }
  return store_.Stage(entry);
}

absl::StatusOr<std::string> Replica::OnFetch(std::uint64_t sequence,
                                             const EntryDigest& digest) const {
  absl::StatusOr<Entry> entry = store_.Find(sequence, digest);
  if (entry.ok()) return std::move(entry->bytes);
  if (absl::IsNotFound(entry.status()) && sequence <= store_.applied().sequence) {
    return absl::OutOfRangeError("The entry was applied, and its bytes are gone");
  }
  return MakeError(reasons::kStorageFailed, absl::StrCat("Entry ", sequence, " is not here"));
}

void Replica::OnView(const GroupView& view) {
  if (view.commit_point.has_value()) epoch_ = std::max(epoch_, view.commit_point->epoch);
  view_ = view;
  primary_node_ = view.primary.has_value() ? view.primary->node : "";
  NoteConfig(view);
  // An earlier call that timed out may have been made late.
  if (const auto told = view.applied.find(options_.node); told != view.applied.end()) {
    told_ = std::min(told_, told->second);
  }
  // Another process that had the name of this node for a while may have told its own.
  if (const auto told = view.addresses.find(options_.node);
      told != view.addresses.end() && told->second != options_.address) {
    has_told_address_ = false;
  }
  if (view.config.has_value() && view.commit_point.has_value()) {
    proposer_.Take(*view.config, *view.commit_point);
  }
  ServeBarriers();
  Trim(view);
  if (proposer_.is_leading() && has_left_) Resign("this node has left the group");
  StandIfVacant(view);
  // Reads on at once, unless the next entry's bytes are nowhere now.
  const std::uint64_t applied = store_.applied().sequence;
  const bool has_more = view.commit_point.has_value() && view.commit_point->sequence > applied;
  if (has_more && applied > applied_before_poll_) return Wake();
  PollIfDue();  // Something may have changed since the poll began.
}

void Replica::StandIfVacant(const GroupView& view) {
  if (proposer_.is_leading() || standing_.is_running() || !may_serve()) return;
  if (clock_.Now() < rests_until_) return;
  if (view.primary.has_value() || !view.config.has_value()) return;
  if (!IsIn(*view.config)) return;
  const CommitPoint point = view.commit_point.value_or(CommitPoint());
  if (!HasApplied(point)) return;
  const std::optional<std::int64_t> lease = lease_.lease();
  if (!lease.has_value()) return;
  standing_lease_ = lease;

  candidacy_ = {.primary = {.node = options_.node, .nonce = make_nonce_()},
                .commit_point = {.epoch = point.epoch + 1,
                                 .sequence = point.sequence,
                                 .digest = point.digest,
                                 .nonce = make_nonce_()},
                .config = *view.config};
  const GroupKeys& keys = options_.keys;
  const auto as_read = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional(text);
  };
  // Each change of the primary and each entry changes the commit point for ever. So once these
  // compares have failed, they fail for ever, and so do those of an earlier primary's transactions.
  standing_.Start({.compares = {{keys.primary(), std::nullopt},
                                {keys.commit_point(), as_read(view.commit_point_text)},
                                {keys.config(), as_read(view.config_text)}},
                   .puts = {{keys.primary(), EncodePrimary(candidacy_.primary), *lease},
                            {keys.commit_point(), EncodeCommitPoint(candidacy_.commit_point)}},
                   .reads = {keys.primary(), keys.commit_point(), keys.config()}},
                  [this](const EtcdTxnResult& result) { OnStood(result); });
}

bool Replica::HasApplied(const CommitPoint& point) const {
  const AppliedEntry applied = store_.applied();
  return applied.sequence == point.sequence && applied.digest == point.digest;
}

bool Replica::IsIn(const GroupConfig& config) const {
  return std::ranges::find(config.replicas, options_.node) != config.replicas.end();
}

void Replica::OnStood(const EtcdTxnResult& result) {
  // The compares fail, too, if an earlier attempt was made: then etcd has this node's key.
  if (!result.succeeded && result.values[0] != EncodePrimary(candidacy_.primary)) return Wake();
  epoch_ = std::max(epoch_, candidacy_.commit_point.epoch);
  if (!lease_.lease().has_value()) return Resign("its lease in etcd has ended");
  if (!result.succeeded) {
    // Since that attempt the configuration may have changed, and with it the commit point.
    const auto point = ParseCommitPoint(result.values[1].value_or(""));
    const auto config = ParseGroupConfig(result.values[2].value_or(""));
    if (!point.ok() || !config.ok() || point->epoch != candidacy_.commit_point.epoch ||
        point->sequence != candidacy_.commit_point.sequence) {
      return Resign("etcd has values of this primary that it has not put");
    }
    if (!IsIn(*config)) return Resign("this node has left the group");
    candidacy_.commit_point = *point;
    candidacy_.config = *config;
  }
  // The answer came late, and the lease had ended in etcd before.
  if (!HasApplied(candidacy_.commit_point)) {
    return Resign("another primary has named entries since it was elected");
  }
  has_term_ = true;
  // A poll that was sent before would apply entries that the proposer applies.
  follower_.Abandon();
  proposer_.Begin(candidacy_);
  membership_.Begin(candidacy_.primary);
}

void Replica::Trim(const GroupView& view) {
  if (!view.config.has_value()) return;
  // What this replica has not synced, it needs again after a power cut, also when it has left the
  // group and the others do not wait for it.
  std::uint64_t kept_from = told_ + 1;
  for (const std::string& node : view.config->replicas) {
    const auto found = view.applied.find(node);
    kept_from = std::min(kept_from, found == view.applied.end() ? 0 : found->second + 1);
  }
  // Whoever needs an entry whose slot was overwritten is seeded anew.
  const std::uint64_t newest = view.commit_point.has_value() ? view.commit_point->sequence : 0;
  const std::uint64_t slots = options_.keys.slots();
  const std::uint64_t oldest_slot = newest > slots ? newest - slots + 1 : 0;
  store_.Trim(std::min(std::max(kept_from, oldest_slot), store_.applied().sequence + 1));
}

void Replica::TellApplied() {
  const std::uint64_t applied = store_.applied().sequence;
  if (applied == told_) return;
  next_told_ = clock_.Now() + options_.poll_interval;
  // Others trim what all have told. A power cut must not make this replica need it again.
  if (!store_.Sync().ok()) return;
  etcd_.Run({.compares = {},
             .puts = {{options_.keys.applied(options_.node), EncodeApplied(applied)}},
             .reads = {}},
            [this, applied](const absl::StatusOr<EtcdTxnResult>& result) {
              if (result.ok()) told_ = std::max(told_, applied);
            });
}

void Replica::TellAddress() {
  if (has_told_address_ || is_telling_address_ || options_.address.empty()) return;
  is_telling_address_ = true;
  etcd_.Run({.compares = {},
             .puts = {{options_.keys.node(options_.node),
                       EncodeNode({.address = options_.address, .group = options_.keys.group()})}},
             .reads = {}},
            [this](const absl::StatusOr<EtcdTxnResult>& result) {
              is_telling_address_ = false;
              has_told_address_ = result.ok();
            });
}

void Replica::NoteConfig(const GroupView& view) {
  if (!view.config.has_value() || view.config->version < config_version_) return;
  config_version_ = view.config->version;
  // A view from before this node became a replica says nothing about whether it still is one.
  was_in_ = was_in_ || IsIn(*view.config);
  has_left_ = was_in_ && !IsIn(*view.config);
}

void Replica::ServeBarriers() {
  const std::uint64_t applied = store_.applied().sequence;
  std::vector<Barrier> waiting = std::exchange(barriers_, {});
  for (Barrier& barrier : waiting) {
    if (!may_serve()) {
      barrier.done(follower_.gap());
    } else if (barrier.sequence <= applied) {
      barrier.done(absl::OkStatus());
    } else {
      barriers_.push_back(std::move(barrier));
    }
  }
}

}  // namespace softlookup
