#ifndef SOFTLOOKUP_SERVER_ROUTER_ROUTES_H_
#define SOFTLOOKUP_SERVER_ROUTER_ROUTES_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <optional>
#include <string>

#include "server/base/method.h"
#include "server/router/primary_call.h"
#include "server/router/seen_revisions.h"

// What a router must know of each method.
namespace softlookup::server {

// Who answers a method.
enum class RoutedTo : std::uint8_t {
  kRouter,        // The router itself: health and reflection.
  kReplica,       // Any replica of the group.
  kPrimary,       // The primary of the group, with one answer.
  kStream,        // The primary of the group, on a stream that the router passes on.
  kLookupStream,  // Any replica, for each message of a StreamLookup.
  kAllGroups,     // The primaries of all groups: ListStores.
  kOnlyGroup,     // The primary of the only group. A cluster of several groups has no answer.
};
RoutedTo RoutedToOf(Method method);

// Returns the store that `request`, of `method`, is about; "" if it is about none.
std::string StoreOf(Method method, grpc::ByteBuffer& request);
// Returns whether `request`, of `method`, may be made twice.
Repeat RepeatOf(Method method, grpc::ByteBuffer& request);
// Notes in `revisions` what the answer `response` to a call of `method` about `store` tells.
// `new_name` is that of RenameStore.
void NoteAnswer(Method method, const std::string& store, const std::string& new_name,
                grpc::ByteBuffer& response, SeenRevisions& revisions);
// Returns the number of rows that `response`, of `method`, tells to have changed. nullopt: the
// method changes no rows.
std::optional<std::uint64_t> ChangedRows(Method method, grpc::ByteBuffer& response);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_ROUTES_H_
