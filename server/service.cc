#include "server/service.h"

#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "server/admin/admin_methods.h"
#include "server/admin/restore_call.h"
#include "server/base/method.h"
#include "server/rpc/append_call.h"
#include "server/rpc/append_stream.h"
#include "server/rpc/compact_call.h"
#include "server/rpc/lookup_call.h"
#include "server/rpc/lookup_stream.h"
#include "server/rpc/message_receiver.h"
#include "server/rpc/reflection.h"
#include "server/rpc/row_stream.h"
#include "server/rpc/status.h"
#include "server/rpc/store_methods.h"
#include "server/rpc/unary_call.h"
#include "server/rpc/watch_stream.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup::server {
namespace {

// A call of an unknown method. No metric counts it, since the client chose the method's name.
class UnknownCall final : public Rpc::Handler {
 public:
  static void Start(ConnectionCalls& connections, Rpc& rpc) {
    rpc.Attach(*new UnknownCall(connections, rpc));
    rpc.Finish(ToGrpcStatus(MakeError(reasons::kUnknownMethod,
                                      absl::StrCat("This server has no method ", rpc.path()))));
  }
  void OnDone() override { delete this; }

 private:
  UnknownCall(ConnectionCalls& connections, Rpc& rpc) : connection_(connections, rpc.peer()) {}

  const ConnectionCalls::Call connection_;
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

// Has a worker call `method` with the request, and answers with the response of `method`.
template <typename Request, typename Response>
void Answer(std::unique_ptr<Call> call, Engine& engine,
            absl::Status (*method)(Engine&, Call&, const Request&, Response&)) {
  StartCall<Request, Response>(
      std::move(call), UnaryCall::RunOn::kWorker,
      [&engine, method](Call& call, const Request& request, Response& response) {
        return method(engine, call, request, response);
      });
}

}  // namespace

void Service::Begin(Rpc& rpc) {
  const MethodSpec* const spec = FindMethod(rpc.path());
  if (spec == nullptr) return UnknownCall::Start(dependencies_.limiters.connections, rpc);
  auto call = std::make_unique<Call>(dependencies_, rpc, *spec);
  const absl::Status status = call->gate().Admit();
  if (status.ok()) return Serve(std::move(call));
  const bool is_denial = absl::IsPermissionDenied(status) && dependencies_.audit != nullptr;
  const DeniedCall::KeepNames keep_names = is_denial ? NameKeeperOf(spec->method) : nullptr;
  if (keep_names == nullptr) return RefusedCall::Start(std::move(call), status);
  DeniedCall::Start(std::move(call), status, keep_names);
}

void Service::Serve(std::unique_ptr<Call> call) {
  switch (call->spec().method) {
    case Method::kCreateStore:
      return Answer(std::move(call), engine_, &CreateStore);
    case Method::kGetStore:
      return Answer(std::move(call), engine_, &GetStore);
    case Method::kListStores:
      return Answer(std::move(call), engine_, &ListStores);
    case Method::kUpdateStore:
      return Answer(std::move(call), engine_, &UpdateStore);
    case Method::kRenameStore:
      return Answer(std::move(call), engine_, &RenameStore);
    case Method::kCompactStore:
      return StartCompactStore(std::move(call), engine_);
    case Method::kDeleteStore:
      return Answer(std::move(call), engine_, &DeleteStore);
    case Method::kAppend:
      return StartAppend(std::move(call), engine_);
    case Method::kStreamAppend:
      return AppendStream::Start(std::move(call), engine_);
    case Method::kReadRows:
      return RowStream::Start(std::move(call), engine_);
    case Method::kDeleteRows:
      return Answer(std::move(call), engine_, &DeleteRows);
    case Method::kLookup:
      return StartLookup(std::move(call), engine_);
    case Method::kStreamLookup:
      return LookupStream::Start(std::move(call), engine_);
    case Method::kAttend:
      return StartAttend(std::move(call), engine_);
    case Method::kGetMemory:
      return Answer(std::move(call), engine_, &GetMemory);
    case Method::kWatchMemory:
      return WatchStream::Start(std::move(call), engine_);
    case Method::kGetWriter:
      return Answer(std::move(call), engine_, &GetWriter);
    case Method::kCreateBackup:
      return StartCreateBackup(std::move(call), backups_);
    case Method::kListBackups:
      return StartListBackups(std::move(call), backups_, engine_.limits());
    case Method::kRestoreStore:
      return StartRestoreStore(std::move(call), engine_, backups_);
    case Method::kGetGroup:
      return StartGetGroup(std::move(call), member_);
    case Method::kAddReplica:
      return StartAddReplica(std::move(call), member_);
    case Method::kRemoveReplica:
      return StartRemoveReplica(std::move(call), member_);
    case Method::kMovePrimary:
      return StartMovePrimary(std::move(call), member_);
    case Method::kHealthCheck:
      return StartHealthCheck(std::move(call), health_);
    case Method::kHealthWatch:
      return HealthWatch::Start(std::move(call), health_);
    case Method::kReflection:
      return ReflectionStream::Start(std::move(call));
  }
}

}  // namespace softlookup::server
