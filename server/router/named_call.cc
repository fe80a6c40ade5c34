#include "server/router/named_call.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "server/rpc/status.h"

namespace softlookup::server {

void NamedCall::Try(const Group& group) {
  const auto named = std::ranges::find_if(
      group.replicas, [this](const auto& replica) { return replica.node->name() == node_; });
  if (named == group.replicas.end()) {
    if (is_map_new_) {
      return Finish(InvalidOption(
          "node", absl::StrCat("node ", node_, " is no replica of group ", group.name)));
    }
    // The node may be new. Of two reads that have ended since, the second began after the call. The
    // next map is not older.
    is_map_new_ = parts().watch.read_count() >= reads_before_ + 2;
    return LookAgain(ClusterUnavailable(
        absl::StrCat("Node ", node_, " is not known, and etcd does not answer whether it is new")));
  }
  if (named->node->is_connected()) return Send(named->node, request().bytes);
  LookAgain(ClusterUnavailable(absl::StrCat("Node ", node_, " cannot be reached now")));
}

void NamedCall::OnError(const std::shared_ptr<Node>&, const grpc::Status& grpc_status,
                        const Group&) {
  absl::Status status = FromGrpcStatus(grpc_status);
  if (absl::IsUnavailable(status) || absl::IsCancelled(status)) return LookAgain(std::move(status));
  Finish(std::move(status));
}

}  // namespace softlookup::server
