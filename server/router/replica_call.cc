#include "server/router/replica_call.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/base/steady_time.h"
#include "server/router/wire_fields.h"
#include "server/rpc/status.h"
#include "softlookup/partial_lookup.h"

namespace softlookup::server {
namespace {

// Whether a node has waited in vain for the revision that a lookup needs.
bool LacksRevision(const absl::Status& status) {
  const ErrorMetadata metadata = MetadataOf(status);
  return std::ranges::find(metadata, std::pair<std::string, std::string>(
                                         "waited_for", "revision")) != metadata.end();
}

}  // namespace

std::shared_ptr<Node> ReplicaCall::Choose(const Group& group) const {
  const auto is_asked = [this](const std::shared_ptr<Node>& node) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return std::ranges::find(asked_, node) != asked_.end();
  };
  if (needs_primary_ && MayHavePrimary(group)) {
    const bool is_there = group.primary != nullptr && group.primary->is_connected();
    return is_there && !is_asked(group.primary) ? group.primary : nullptr;
  }
  // The turn decides between nodes with as many calls.
  static std::atomic<std::size_t> turns{0};
  const std::size_t turn = turns.fetch_add(1, std::memory_order_relaxed);
  const std::size_t count = group.replicas.size();
  std::shared_ptr<Node> best;
  std::tuple<bool, bool, std::ptrdiff_t, std::int64_t> best_rank;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [node, is_current] = group.replicas[(turn + i) % count];
    if (is_asked(node) || !node->is_connected()) continue;
    const std::ptrdiff_t preference =
        std::ranges::find(choice_.preferred, node->name()) - choice_.preferred.begin();
    const std::tuple rank(!is_current, node->is_avoided(), preference, node->in_progress());
    if (best != nullptr && best_rank <= rank) continue;
    best = node;
    best_rank = rank;
  }
  return best;
}

void ReplicaCall::Try(const Group& group) {
  needs_primary_ = !store().empty() && !parts().revisions.Needed(store()).has_value();
  if (const std::shared_ptr<Node> node = Choose(group); node != nullptr) {
    return SendTo(node, group);
  }
  const absl::Status unreachable = ClusterUnavailable("No server of the group can be reached now");
  if (choice_.only_once) return Finish(unreachable);
  asked_.clear();
  LookAgain(unreachable);
}

void ReplicaCall::SendTo(const std::shared_ptr<Node>& node, const Group& group) {
  needed_ = 0;
  // The node of a group of one has all. Of several, the one that was the primary may not be it any
  // more. Without etcd and a primary, nobody is known to have more than another.
  if (!store().empty() && group.replicas.size() > 1 && MayHavePrimary(group)) {
    const std::uint64_t seen = parts().revisions.Needed(store()).value_or(0);
    if (seen > NumberField(request().bytes, {kMinRevisionField})) needed_ = seen;
  }
  asked_.push_back(node);
  sent_ = SteadyNow();
  WatchOnce();
  if (needed_ == 0) {
    // A part of a lookup waits for its revision. The primary has it, or is about to have it.
    const bool waits_for_long = store().empty() && needs_primary_;
    return Send(node, request().bytes,
                waits_for_long ? std::optional(kPrimaryRevisionWait) : std::nullopt);
  }
  Send(node, WithNumber(request().bytes, kMinRevisionField, needed_), kRevisionWait);
}

void ReplicaCall::WatchOnce() {
  if (std::exchange(is_watched_, true)) return;
  Watch();
}

bool ReplicaCall::MayHavePrimary(const Group& group) const {
  return parts().watch.has_etcd() || (group.primary != nullptr && group.primary->is_connected());
}

bool ReplicaCall::IsBehind(const std::shared_ptr<Node>& node, const absl::Status& status,
                           const Group& group) const {
  const bool is_primary = node == group.primary;
  // A part of a lookup asks for a revision that some node has. A follower can show it first.
  const bool is_part = store().empty();
  if (LacksRevision(status)) return needed_ > 0 || !is_primary || is_part;
  // A node that follows may not have made the store yet.
  if (is_primary || ReasonOf(status) != reasons::kStoreNotFound.name) return false;
  return needed_ > 0 || (group.primary != nullptr && group.primary->is_connected());
}

void ReplicaCall::OnError(const std::shared_ptr<Node>& node, const grpc::Status& grpc_status,
                          const Group& group) {
  absl::Status status = FromGrpcStatus(grpc_status);
  const bool is_behind = IsBehind(node, status, group);
  if (!absl::IsUnavailable(status) && !absl::IsCancelled(status) && !is_behind) {
    return Finish(std::move(status));
  }
  // A node that does not keep the rows of this part may keep those of others.
  const bool lacks_rows = ReasonOf(status) == kRowsNotResident.name;
  if (!absl::IsNotFound(status) && !lacks_rows) node->Avoid(kAvoided);
  if (!lacks_rows && (!is_behind || node == group.primary)) parts().watch.Wake();
  if (is_behind) needs_primary_ = true;
  if (is_waiting()) return;  // Another node may answer.
  if (choice_.only_once) return Finish(std::move(status));
  const std::shared_ptr<Node> next = Choose(group);
  if (next != nullptr) return SendTo(next, group);
  asked_.clear();
  LookAgain(std::move(status));
}

void ReplicaCall::OnAnswer(grpc::ByteBuffer& response) {
  if (!store().empty()) {
    parts().revisions.Note(store(), NumberField(response, {kRevisionField}));
  }
}

void ReplicaCall::OnWaited(const Group& group) {
  is_watched_ = false;
  if (!is_waiting() || has_hedged_) return;
  const std::shared_ptr<Node> node = asked_.back();
  // A node that answers others is busy, and not silent.
  const absl::Duration silence = SteadyNow() - std::max(sent_, node->last_answer());
  if (silence < SilenceWatch::kTime) return WatchOnce();
  node->Avoid(kAvoided);
  const std::shared_ptr<Node> next = Choose(group);
  if (next == nullptr) return;
  has_hedged_ = true;
  SendTo(next, group);
}

}  // namespace softlookup::server
