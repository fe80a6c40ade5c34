#ifndef SOFTLOOKUP_SERVER_ROUTER_ROUTE_H_
#define SOFTLOOKUP_SERVER_ROUTER_ROUTE_H_

#include <grpcpp/grpcpp.h>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

namespace softlookup::server {

// The way of one request to nodes and back. Thread-safe.
class Route {
 public:
  // Called once, on any thread, perhaps within Start().
  using Done = absl::AnyInvocable<void(absl::Status, const grpc::ByteBuffer& response)>;

  virtual ~Route() = default;

  // Call this once, first.
  virtual void Start() = 0;
  // Ends the route with CANCELLED, if it is not over.
  virtual void Cancel() = 0;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_ROUTE_H_
