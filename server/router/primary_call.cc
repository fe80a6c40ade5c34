#include "server/router/primary_call.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "server/limits/tenant_limits.h"
#include "server/rpc/status.h"

namespace softlookup::server {
namespace {

// Returns an entry of an error's metadata; "" if there is none.
std::string EntryOf(const absl::Status& status, absl::string_view key) {
  for (const auto& [name, value] : MetadataOf(status)) {
    if (name == key) return value;
  }
  return "";
}

// Whether the node refuses all calls, because it starts or stops.
bool IsAway(absl::string_view reason) {
  return reason == reasons::kLoading.name || reason == reasons::kShuttingDown.name;
}

}  // namespace

void PrimaryCall::Try(const Group& group) {
  if (group.primary != nullptr && group.primary->is_connected()) {
    return Send(group.primary, request().bytes);
  }
  if (!parts().watch.has_etcd()) {
    return Finish(ClusterUnavailable("The primary of the store's group is away, and so is etcd"));
  }
  LookAgain(ClusterUnavailable("The store's group has no primary now"));
}

void PrimaryCall::OnError(const std::shared_ptr<Node>& node, const grpc::Status& grpc_status,
                          const Group& group) {
  absl::Status status = FromGrpcStatus(grpc_status);
  if (!IsFromNode(grpc_status)) {
    if (!absl::IsUnavailable(status) && !absl::IsCancelled(status)) return Finish(status);
    // The connection broke.
    parts().watch.Wake();
    if (repeat_ == Repeat::kAllowed) {
      return LookAgain(ClusterUnavailable("The primary of the store's group went away"));
    }
    return Finish(MakeError(reasons::kClusterUnavailable,
                            "The primary went away before it answered: what was asked may have "
                            "been done",
                            {{"written", "unknown"}}));
  }
  const std::string reason = ReasonOf(status);
  // A new name of the store can be of another tenant.
  const bool is_elsewhere = reason == reasons::kTenantElsewhere.name &&
                            EntryOf(status, "tenant") == TenantLimits::TenantOf(store());
  if (is_elsewhere && !has_moved_) {
    const std::string other = EntryOf(status, "group");
    parts().tenants.Learn(store(), other);
    MoveTo(other);
    has_moved_ = true;
    return LookAgain(std::move(status));
  }
  const bool is_unwritten = EntryOf(status, "written") == "no" || IsAway(reason);
  if (!absl::IsUnavailable(status) || (!is_unwritten && repeat_ == Repeat::kNever)) {
    return Finish(std::move(status));
  }
  const std::string hint = EntryOf(status, "primary");
  if (FollowHint(hint, *node, group)) return;
  // Another node will lead, or does so already. A primary that cannot write now says so itself.
  if (!hint.empty() || IsAway(reason) || group.primary != node) {
    return LookAgain(std::move(status));
  }
  Finish(std::move(status));
}

bool PrimaryCall::FollowHint(const std::string& hint, const Node& from, const Group& group) {
  if (hint.empty() || hint == from.name() || hints_ == kHintsMax) return false;
  const auto named = std::ranges::find_if(
      group.replicas, [&](const auto& replica) { return replica.node->name() == hint; });
  if (named == group.replicas.end() || !named->node->is_connected()) return false;
  ++hints_;
  parts().watch.Wake();
  Send(named->node, request().bytes);
  return true;
}

}  // namespace softlookup::server
