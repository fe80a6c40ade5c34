#include "server/router/lookup_route.h"

#include "core/base/error.h"
#include "server/router/ranged_lookup.h"
#include "server/router/ranged_stores.h"
#include "server/router/replica_call.h"

namespace softlookup::server {

void LookupRoute::Start() {
  if (parts_.ranged_stores.Has(store_)) return StartRanged();
  StartWhole();
}

void LookupRoute::Cancel() {
  std::shared_ptr<Route> route;
  {
    absl::MutexLock lock(&mutex_);
    is_cancelled_ = true;
    route = route_;
  }
  if (route != nullptr) route->Cancel();
}

void LookupRoute::StartWhole() {
  RoutedRequest request = request_;
  request.knows_ranges = true;
  Follow(ReplicaCall::Make(
      parts_, std::move(request), store_,
      [self = shared_from_this()](absl::Status status, const grpc::ByteBuffer& response) {
        if (ReasonOf(status) != kStoreHasRanges.name) {
          return self->done_(std::move(status), response);
        }
        self->parts_.ranged_stores.Add(self->store_);
        self->StartRanged();
      },
      /*choice=*/{}));
}

void LookupRoute::StartRanged() {
  Follow(RangedLookup::Make(
      parts_, request_, store_,
      [self = shared_from_this()](absl::Status status, const grpc::ByteBuffer& response) {
        self->done_(std::move(status), response);
      }));
}

void LookupRoute::Follow(std::shared_ptr<Route> route) {
  bool is_cancelled = false;
  {
    absl::MutexLock lock(&mutex_);
    route_ = route;
    is_cancelled = is_cancelled_;
  }
  if (is_cancelled) route->Cancel();
  route->Start();
}

}  // namespace softlookup::server
