#ifndef SOFTLOOKUP_SERVER_ROUTER_NAMED_CALL_H_
#define SOFTLOOKUP_SERVER_ROUTER_NAMED_CALL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "server/router/routed_call.h"

namespace softlookup::server {

// A request that one node of a group answers, of this name. It must be safe to send twice. Waits
// while the node cannot be reached. If the group has no such node, reads the map anew before it
// refuses the request.
class NamedCall final : public RoutedCall {
 public:
  static std::shared_ptr<NamedCall> Make(const RouterParts& parts, RoutedRequest request,
                                         std::string store, std::string node, Done done) {
    return std::shared_ptr<NamedCall>(new NamedCall(parts, std::move(request), std::move(store),
                                                    std::move(node), std::move(done)));
  }

 private:
  NamedCall(const RouterParts& parts, RoutedRequest request, std::string store, std::string node,
            Done done)
      : RoutedCall(parts, std::move(request), std::move(store), std::move(done)),
        node_(std::move(node)),
        reads_before_(parts.watch.read_count()) {}

  void Try(const Group& group) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnError(const std::shared_ptr<Node>& node, const grpc::Status& status,
               const Group& group) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string node_;
  const std::uint64_t reads_before_;                 // Of the map, before this call.
  bool is_map_new_ ABSL_GUARDED_BY(mutex_) = false;  // The map was read after the call had begun.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_NAMED_CALL_H_
