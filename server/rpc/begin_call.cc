#include "server/rpc/begin_call.h"

#include <optional>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "server/base/method.h"
#include "server/limits/connection_calls.h"
#include "server/rpc/message_receiver.h"
#include "server/rpc/status.h"
#include "server/rpc/unary_call.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup::server {
namespace {

// A call of an unknown method. No metric counts it, since the client chose the method's name.
class UnknownCall final : public Rpc::Handler {
 public:
  static void Start(ConnectionCalls& connections, Rpc& rpc, CallOrigin origin) {
    rpc.Attach(*new UnknownCall(connections, rpc, origin));
    rpc.Finish(ToGrpcStatus(MakeError(reasons::kUnknownMethod,
                                      absl::StrCat("This server has no method ", rpc.path()))));
  }
  void OnDone() override { delete this; }

 private:
  UnknownCall(ConnectionCalls& connections, const Rpc& rpc, CallOrigin origin) {
    if (origin == CallOrigin::kClient) connection_.emplace(connections, rpc.peer());
  }

  std::optional<ConnectionCalls::Call> connection_;  // nullopt for a router's call.
};

// A DeniedCall::KeepNames for requests of type Request.
template <typename Request>
void KeepNamesOf(Call& call, grpc::ByteBuffer& bytes) {
  MessageCharge charge;
  Request request;
  if (!call.Receive(bytes, request, charge).ok()) return;
  if constexpr (std::is_same_v<Request, v1::RenameStoreRequest>) {
    call.gate().KeepNames(request.store(), request.new_name());
  } else if constexpr (requires { request.store().name(); }) {
    call.gate().KeepNames(request.store().name(), "");
  } else {
    call.gate().KeepNames(request.name(), "");
  }
}

// Returns the function that keeps the names in a request of `method`, if the method changes a store
// as a whole. Null for other methods.
DeniedCall::KeepNames NameKeeperOf(Method method) {
  switch (method) {
    case Method::kCreateStore:
      return &KeepNamesOf<v1::CreateStoreRequest>;
    case Method::kUpdateStore:
      return &KeepNamesOf<v1::UpdateStoreRequest>;
    case Method::kRenameStore:
      return &KeepNamesOf<v1::RenameStoreRequest>;
    case Method::kCompactStore:
      return &KeepNamesOf<v1::CompactStoreRequest>;
    case Method::kDeleteStore:
      return &KeepNamesOf<v1::DeleteStoreRequest>;
    default:
      return nullptr;
  }
}

}  // namespace

std::unique_ptr<Call> BeginCall(const CallDependencies& dependencies, Rpc& rpc, CallOrigin origin) {
  const MethodSpec* const spec = FindMethod(rpc.path());
  if (spec == nullptr || (spec->is_for_routers && origin == CallOrigin::kClient)) {
    UnknownCall::Start(dependencies.limiters.connections, rpc, origin);
    return nullptr;
  }
  auto call = std::make_unique<Call>(dependencies, rpc, *spec, origin);
  const absl::Status status = call->gate().Admit();
  if (status.ok()) return call;
  const bool is_denial = absl::IsPermissionDenied(status) && dependencies.audit != nullptr;
  const DeniedCall::KeepNames keep_names = is_denial ? NameKeeperOf(spec->method) : nullptr;
  if (keep_names == nullptr) {
    RefusedCall::Start(std::move(call), status);
  } else {
    DeniedCall::Start(std::move(call), status, keep_names);
  }
  return nullptr;
}

}  // namespace softlookup::server
