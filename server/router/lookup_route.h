#ifndef SOFTLOOKUP_SERVER_ROUTER_LOOKUP_ROUTE_H_
#define SOFTLOOKUP_SERVER_ROUTER_LOOKUP_ROUTE_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/router/route.h"
#include "server/router/routed_call.h"

namespace softlookup::server {

// A lookup. Any replica can answer it, unless the store is cut into ranges: its parts are asked for
// then, and merged (RangedLookup). Thread-safe.
class LookupRoute final : public Route, public std::enable_shared_from_this<LookupRoute> {
 public:
  static std::shared_ptr<LookupRoute> Make(const RouterParts& parts, RoutedRequest request,
                                           std::string store, Done done) {
    return std::shared_ptr<LookupRoute>(
        new LookupRoute(parts, std::move(request), std::move(store), std::move(done)));
  }

  void Start() override;
  void Cancel() override;

 private:
  LookupRoute(const RouterParts& parts, RoutedRequest request, std::string store, Done done)
      : parts_(parts),
        request_(std::move(request)),
        store_(std::move(store)),
        done_(std::move(done)) {}

  void StartWhole();
  void StartRanged();
  // Starts `route` in place of the one before.
  void Follow(std::shared_ptr<Route> route);

  const RouterParts parts_;
  const RoutedRequest request_;
  const std::string store_;
  Done done_;  // Called by the last route.

  absl::Mutex mutex_;
  std::shared_ptr<Route> route_ ABSL_GUARDED_BY(mutex_);
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_LOOKUP_ROUTE_H_
