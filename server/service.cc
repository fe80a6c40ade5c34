#include "server/service.h"

#include <utility>

#include "server/admin/admin_methods.h"
#include "server/admin/range_methods.h"
#include "server/admin/restore_call.h"
#include "server/base/method.h"
#include "server/rpc/append_call.h"
#include "server/rpc/append_stream.h"
#include "server/rpc/begin_call.h"
#include "server/rpc/compact_call.h"
#include "server/rpc/lookup_call.h"
#include "server/rpc/lookup_stream.h"
#include "server/rpc/range_calls.h"
#include "server/rpc/reflection.h"
#include "server/rpc/row_stream.h"
#include "server/rpc/store_methods.h"
#include "server/rpc/unary_call.h"
#include "server/rpc/watch_stream.h"

namespace softlookup::server {
namespace {

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

void Service::Begin(Rpc& rpc, CallOrigin origin) {
  if (auto call = BeginCall(dependencies_, rpc, origin)) Serve(std::move(call));
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
      return StartRestoreStore(std::move(call), engine_, backups_, member_);
    case Method::kGetGroup:
      return StartGetGroup(std::move(call), member_);
    case Method::kAddReplica:
      return StartAddReplica(std::move(call), member_);
    case Method::kRemoveReplica:
      return StartRemoveReplica(std::move(call), member_);
    case Method::kMovePrimary:
      return StartMovePrimary(std::move(call), member_);
    case Method::kSplitStore:
      return StartSplitStore(std::move(call), engine_, member_);
    case Method::kMoveRange:
      return StartMoveRange(std::move(call), engine_, member_);
    case Method::kGetRanges:
      return StartGetRanges(std::move(call), engine_, member_);
    case Method::kHealthCheck:
      return StartHealthCheck(std::move(call), health_);
    case Method::kHealthWatch:
      return HealthWatch::Start(std::move(call), health_);
    case Method::kReflection:
      return ReflectionStream::Start(std::move(call));
    case Method::kBeginLookup:
      return StartBeginLookup(std::move(call), engine_);
    case Method::kAnswerPart:
      return StartAnswerPart(std::move(call), engine_);
    case Method::kAnswerFirstPart:
      return StartAnswerFirstPart(std::move(call), engine_);
    case Method::kSumRows:
      return StartSumRows(std::move(call), engine_);
  }
}

}  // namespace softlookup::server
