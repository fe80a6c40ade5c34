#include "server/router/router_service.h"

#include <memory>
#include <utility>

#include "server/base/method.h"
#include "server/router/list_all_stores.h"
#include "server/router/relay_stream.h"
#include "server/router/routed_lookup_stream.h"
#include "server/router/routed_unary.h"
#include "server/router/routes.h"
#include "server/rpc/begin_call.h"
#include "server/rpc/reflection.h"

namespace softlookup::server {

void RouterService::Begin(Rpc& rpc) {
  std::unique_ptr<Call> call = BeginCall(dependencies_, rpc, CallOrigin::kClient);
  if (call == nullptr) return;
  const Method method = call->spec().method;
  switch (RoutedToOf(method)) {
    case RoutedTo::kReplica:
    case RoutedTo::kPrimary:
    case RoutedTo::kOnlyGroup:
      return StartRoutedUnary(std::move(call), parts_);
    case RoutedTo::kAllGroups:
      return StartListAllStores(std::move(call), parts_);
    case RoutedTo::kLookupStream:
      return RoutedLookupStream::Start(std::move(call), parts_);
    case RoutedTo::kStream:
      return RelayStream::Start(std::move(call), parts_);
    case RoutedTo::kRouter:
      break;
  }
  if (method == Method::kHealthCheck) return StartHealthCheck(std::move(call), health_);
  if (method == Method::kHealthWatch) return HealthWatch::Start(std::move(call), health_);
  ReflectionStream::Start(std::move(call));
}

}  // namespace softlookup::server
