#include "core/replication/follower.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace softlookup {
namespace {

// Parses `text` into `value`, if there is a text. Returns whether it is well-formed.
template <typename Value, typename Parse>
absl::Status ParseInto(const std::optional<std::string>& text, Parse parse,
                       std::optional<Value>& value) {
  value.reset();
  if (!text.has_value()) return absl::OkStatus();
  auto parsed = parse(*text);
  if (!parsed.ok()) return parsed.status();
  value = *std::move(parsed);
  return absl::OkStatus();
}

constexpr absl::string_view kTooFarBehind =
    "this replica is too far behind, and has to get all records anew";

}  // namespace

std::uint64_t Follower::SlotsToRead(Applies applies) const {
  if (applies == Applies::kNo) return 0;
  const std::uint64_t most = std::min(kSlotsPerPoll, keys_.slots());
  if (!view_.commit_point.has_value()) return most;
  const std::uint64_t applied = store_.applied().sequence;
  const std::uint64_t last = std::max(view_.commit_point->sequence, applied);
  return std::min(last - applied + kNewSlots, most);
}

void Follower::Poll(Applies applies, Reads reads,
                    absl::AnyInvocable<void(const GroupView&)> on_view) {
  if (on_view_ != nullptr || has_gap()) return;
  on_view_ = std::move(on_view);
  const std::uint64_t first = store_.applied().sequence + 1;
  EtcdTxn txn{.reads = {keys_.config(), keys_.primary(), keys_.commit_point()},
              .from_one_member = reads == Reads::kFromOneMember};
  for (const std::string& node : replicas_) {
    txn.reads.push_back(keys_.applied(node));
    txn.reads.push_back(keys_.node(node));
  }
  const std::uint64_t slots = SlotsToRead(applies);
  for (std::uint64_t i = 0; i < slots; ++i) txn.reads.push_back(keys_.slot(first + i));
  etcd_.Run(std::move(txn), [this, poll = poll_, applies, nodes = replicas_,
                             first](absl::StatusOr<EtcdTxnResult> result) {
    if (poll == poll_) OnRead(applies, nodes, first, std::move(result));
  });
}

void Follower::OnRead(Applies applies, const std::vector<std::string>& nodes, std::uint64_t first,
                      absl::StatusOr<EtcdTxnResult> result) {
  if (!result.ok()) {
    on_view_ = nullptr;
    return;
  }
  auto value = result->values.begin();
  view_ = {.revision = result->revision};
  view_.config_text = value->value_or("");
  absl::Status status = ParseInto(*value++, ParseGroupConfig, view_.config);
  status.Update(ParseInto(*value++, ParsePrimary, view_.primary));
  view_.commit_point_text = value->value_or("");
  status.Update(ParseInto(*value++, ParseCommitPoint, view_.commit_point));
  for (const std::string& node : nodes) {
    std::optional<std::uint64_t> applied;
    status.Update(ParseInto(*value++, ParseApplied, applied));
    if (applied.has_value()) view_.applied[node] = *applied;
    // A record that cannot be read, such as that of a later version, is as good as none.
    absl::StatusOr<NodeRecord> record = ParseNode((value++)->value_or(""));
    if (!record.ok()) continue;
    if (node != node_) peers_.SetAddress(node, record->address);
    view_.addresses[node] = std::move(record->address);
  }
  slots_.clear();
  next_ = 0;
  const std::uint64_t last = view_.commit_point.has_value() ? view_.commit_point->sequence : 0;
  for (std::uint64_t sequence = first;
       applies == Applies::kYes && value != result->values.end() && sequence <= last; ++sequence) {
    std::optional<Slot> slot;
    status.Update(ParseInto(*value++, ParseSlot, slot));
    if (!status.ok()) break;
    if (!slot.has_value() || slot->sequence != sequence) {
      gap_ = absl::OutOfRangeError(
          absl::StrCat("Entry ", sequence, " of the group is no longer named: ", kTooFarBehind));
      break;
    }
    slots_.push_back(*std::move(slot));
  }
  if (!status.ok()) gap_ = status;
  if (has_gap()) return End();
  if (view_.config.has_value()) replicas_ = view_.config->replicas;
  ApplyNext();
}

void Follower::ApplyNext() {
  while (next_ < slots_.size()) {
    const Slot& slot = slots_[next_];
    const AppliedEntry applied = store_.applied();
    if (slot.sequence <= applied.sequence) {  // A primary has applied it meanwhile.
      ++next_;
      continue;
    }
    if (!store_.is_ready()) {
      waits_ = true;
      return;
    }
    if (slot.previous != applied.digest) {
      gap_ = MakeError(reasons::kStorageFailed,
                       absl::StrCat("Entry ", slot.sequence,
                                    " of the group does not follow what this replica has applied"));
      return End();
    }
    const absl::StatusOr<Entry> staged = store_.Find(slot.sequence, slot.digest);
    if (absl::IsNotFound(staged.status())) {
      if (std::ranges::find(slot.holders, node_) == slot.holders.end()) {
        return Fetch(slot, 0, /*was_trimmed=*/false);
      }
      gap_ = MakeError(
          reasons::kStorageFailed,
          absl::StrCat("etcd says that node ", node_, " has entry ", slot.sequence,
                       " of the group on its disk, but it has not: the disk has lost it, or "
                       "another process has the name of this node"));
      return End();
    }
    if (!staged.ok()) {
      if (absl::IsDataLoss(staged.status())) gap_ = staged.status();
      return End();
    }
    if (const absl::Status applied = store_.Apply(*staged); !applied.ok()) {
      if (absl::IsDataLoss(applied)) gap_ = applied;
      return End();
    }
    ++next_;
  }
  End();
}

void Follower::Fetch(const Slot& slot, std::size_t asked, bool was_trimmed) {
  // The holders come first. After a failure all others are asked, which may have applied it.
  std::vector<std::string> nodes = slot.holders;
  for (const std::string& node : replicas_) {
    if (std::ranges::find(nodes, node) == nodes.end()) nodes.push_back(node);
  }
  std::erase(nodes, node_);
  if (asked >= nodes.size()) {
    // The next poll tries again, as no entry is skipped. But what a replica has trimmed, all have
    // applied who were replicas then, so nobody may have its bytes any more.
    if (was_trimmed) {
      gap_ = absl::OutOfRangeError(
          absl::StrCat("No replica has the bytes of entry ", slot.sequence, ": ", kTooFarBehind));
    }
    return End();
  }
  peers_.Fetch(nodes[asked], slot.sequence, slot.digest,
               [this, poll = poll_, slot, asked, was_trimmed](absl::StatusOr<std::string> bytes) {
                 if (poll != poll_) return;
                 if (!bytes.ok() || bytes->size() != slot.size ||
                     DigestOf(slot.previous, slot.epoch, *bytes) != slot.digest) {
                   return Fetch(slot, asked + 1, was_trimmed || absl::IsOutOfRange(bytes.status()));
                 }
                 Take(slot, *std::move(bytes));
               });
}

void Follower::Take(const Slot& slot, std::string bytes) {
  const Entry entry{.epoch = slot.epoch,
                    .sequence = slot.sequence,
                    .previous = slot.previous,
                    .digest = slot.digest,
                    .bytes = std::move(bytes)};
  // An entry of the same epoch and another digest cannot be here: OnStage() takes one only.
  if (!store_.Stage(entry).ok()) return End();
  ApplyNext();
}

void Follower::End() {
  ++poll_;
  auto on_view = std::move(on_view_);
  on_view_ = nullptr;
  if (on_view != nullptr && !has_gap()) on_view(view_);
}

}  // namespace softlookup
