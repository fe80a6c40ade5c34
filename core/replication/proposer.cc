#include "core/replication/proposer.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/error.h"

namespace softlookup {
Proposer::Proposer(std::string node, const GroupKeys& keys, absl::Duration give_up_after,
                   Etcd& etcd, Peers& peers, EntryStore& store, const Clock& clock,
                   MakeNonce& make_nonce)
    : node_(std::move(node)),
      keys_(keys),
      give_up_after_(give_up_after),
      peers_(peers),
      store_(store),
      clock_(clock),
      make_nonce_(make_nonce),
      naming_(etcd) {}

void Proposer::Begin(const TermOfPrimary& term) {
  SOFTLOOKUP_CHECK(!leading_);
  SOFTLOOKUP_CHECK(store_.applied().sequence == term.commit_point.sequence);
  leading_ = true;
  term_ = term;
  applied_.clear();
}

void Proposer::End(absl::string_view why) {
  if (!leading_) return;
  leading_ = false;
  const bool may_be_committed = naming_.is_running();
  naming_.Abandon();
  std::deque<Proposal> queue = std::exchange(queue_, {});
  const bool in_progress = std::exchange(entry_, {}).sequence > 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const bool is_unknown = i == 0 && in_progress && may_be_committed;
    queue[i].done(is_unknown ? WriteMayBeMade(why) : WriteNotMade(why));
  }
}

void Proposer::Propose(std::string bytes, Done done) {
  SOFTLOOKUP_CHECK(leading_);
  queue_.push_back({.bytes = std::move(bytes), .done = std::move(done), .begin = clock_.Now()});
  StageNext();
}

void Proposer::Tick(const std::map<std::string, std::uint64_t>& applied) {
  if (!leading_) return;
  // A view can be older than the last.
  for (const auto& [node, sequence] : applied) {
    applied_[node] = std::max(applied_[node], sequence);
  }
  if (entry_.sequence > 0 && !naming_.is_running() && clock_.Now() >= next_send_) SendToPeers();
  NameIfReady();
  naming_.Tick();
  if (entry_.sequence > 0 && clock_.Now() >= queue_.front().begin + give_up_after_) {
    End(naming_.is_running() ? "etcd does not answer, or takes no writes"
                             : "too few replicas answer");
  }
}

void Proposer::StageNext() {
  if (!leading_ || held_ || entry_.sequence > 0 || queue_.empty()) return;
  entry_ = {
      .epoch = term_.commit_point.epoch,
      .sequence = term_.commit_point.sequence + 1,
      .previous = term_.commit_point.digest,
      .digest = DigestOf(term_.commit_point.digest, term_.commit_point.epoch, queue_.front().bytes),
      .bytes = std::move(queue_.front().bytes)};
  holders_.clear();
  queue_.front().begin = clock_.Now();
  // The others sync the entry while this replica does. After a refusal they wait: what the disk
  // refuses again would take room on theirs.
  const bool is_sent = !has_refused_;
  if (is_sent) SendToPeers();
  absl::Status own = store_.Stage(entry_);
  has_refused_ = !own.ok();
  if (has_refused_) {
    if (term_.config.replicas.size() > 1) return End(own.message());  // Another one can lead.
    entry_ = {};
    Proposal proposal = std::move(queue_.front());
    queue_.pop_front();
    proposal.done(std::move(own));
    return StageNext();
  }
  holders_.push_back(node_);
  if (!is_sent) SendToPeers();
  NameIfReady();
}

void Proposer::SendToPeers() {
  next_send_ = clock_.Now() + kResendInterval;
  for (const std::string& node : term_.config.replicas) {
    if (node == node_ || Holds(node)) continue;
    peers_.Stage(
        node, entry_,
        [this, node, epoch = entry_.epoch, sequence = entry_.sequence](const absl::Status& status) {
          // The answer may be about an entry of an earlier term of this node, or from a node that
          // has left the group since.
          if (!status.ok() || epoch != entry_.epoch || sequence != entry_.sequence) return;
          if (!IsReplica(node) || Holds(node)) return;
          holders_.push_back(node);
          NameIfReady();
        });
  }
}

bool Proposer::Holds(const std::string& node) const {
  return std::ranges::find(holders_, node) != holders_.end();
}

void Proposer::NameIfReady() {
  if (!leading_ || entry_.sequence == 0 || naming_.is_running()) return;
  if (holders_.size() < term_.config.copies || !SlotIsFree()) return;
  const Slot slot{.epoch = entry_.epoch,
                  .sequence = entry_.sequence,
                  .previous = entry_.previous,
                  .digest = entry_.digest,
                  .size = entry_.bytes.size(),
                  .holders = holders_};
  named_point_ = {.epoch = entry_.epoch,
                  .sequence = entry_.sequence,
                  .digest = entry_.digest,
                  .nonce = make_nonce_()};
  naming_.Start(
      {.compares = {{keys_.commit_point(), EncodeCommitPoint(term_.commit_point)},
                    {keys_.primary(), EncodePrimary(term_.primary)}},
       .puts = {{keys_.slot(slot.sequence), EncodeSlot(slot)},
                {keys_.commit_point(), EncodeCommitPoint(named_point_)}},
       .reads = {keys_.slot(slot.sequence), keys_.commit_point(), keys_.primary(), keys_.config()}},
      [this](const EtcdTxnResult& result) { OnNamed(result); });
}

void Proposer::OnNamed(const EtcdTxnResult& result) {
  // The compares fail, too, if an earlier attempt of this transaction was made. The slot then has
  // the entry.
  bool is_named = result.succeeded;
  if (!is_named && result.values[0].has_value()) {
    const absl::StatusOr<Slot> slot = ParseSlot(*result.values[0]);
    is_named = slot.ok() && slot->sequence == entry_.sequence && slot->digest == entry_.digest &&
               slot->epoch == entry_.epoch;
    // The slot has a later entry: others have committed a whole ring meanwhile, perhaps after this.
    if (slot.ok() && slot->sequence > entry_.sequence) {
      Proposal proposal = std::move(queue_.front());
      queue_.pop_front();
      entry_ = {};
      End("another replica leads");
      return proposal.done(WriteMayBeMade("another replica leads"));
    }
  }
  if (!is_named) {
    if (!Adopt(result)) return End("another replica leads, or this one left the group");
    SendToPeers();
    return NameIfReady();
  }
  const absl::Status applied = store_.Apply(entry_);
  Proposal proposal = std::move(queue_.front());
  queue_.pop_front();
  entry_ = {};
  term_.commit_point = named_point_;
  if (!applied.ok()) {
    End(applied.message());
    return proposal.done(WriteMayBeMade(applied.message()));
  }
  proposal.done(absl::OkStatus());
  // If the compares failed, the next entry's will, too. That shows whether this node still leads.
  StageNext();
}

bool Proposer::Adopt(const EtcdTxnResult& result) {
  if (!result.values[1].has_value() || result.values[2] != EncodePrimary(term_.primary) ||
      !result.values[3].has_value()) {
    return false;
  }
  const absl::StatusOr<CommitPoint> point = ParseCommitPoint(*result.values[1]);
  const absl::StatusOr<GroupConfig> config = ParseGroupConfig(*result.values[3]);
  return point.ok() && config.ok() && SetConfig(*config, *point);
}

bool Proposer::SetConfig(const GroupConfig& config, const CommitPoint& point) {
  if (point.epoch != term_.commit_point.epoch || point.sequence != term_.commit_point.sequence) {
    return false;
  }
  if (std::ranges::find(config.replicas, node_) == config.replicas.end()) return false;
  term_.commit_point = point;
  term_.config = config;
  std::erase_if(holders_, [&](const std::string& node) { return !IsReplica(node); });
  return true;
}

bool Proposer::IsReplica(const std::string& node) const {
  return std::ranges::find(term_.config.replicas, node) != term_.config.replicas.end();
}

void Proposer::Take(const GroupConfig& config, const CommitPoint& point) {
  // A transaction that is being made finds out by itself.
  if (!leading_ || naming_.is_running() || config.version <= term_.config.version) return;
  if (!SetConfig(config, point) || entry_.sequence == 0) return;
  SendToPeers();
  NameIfReady();
}

bool Proposer::SlotIsFree() const {
  if (entry_.sequence <= keys_.slots()) return true;
  const std::uint64_t overwritten = entry_.sequence - keys_.slots();
  const auto count = std::ranges::count_if(term_.config.replicas, [&](const std::string& node) {
    const auto found = applied_.find(node);
    return found != applied_.end() && found->second >= overwritten;
  });
  return static_cast<std::uint64_t>(count) >= term_.config.copies;
}

}  // namespace softlookup
