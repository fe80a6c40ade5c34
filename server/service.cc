#include "server/service.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "server/append_stream.h"
#include "server/call.h"
#include "server/codec.h"
#include "server/lookup_stream.h"
#include "server/row_stream.h"
#include "server/status.h"
#include "server/watch_stream.h"

namespace softlookup::server {
namespace {

// Only on a stream may a request leave its store out.
const std::string kNoStore;

// A call that needs nothing but to be finished. Deletes itself when the call is over.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  explicit UnaryCall(CallTracker& calls) : call_(calls) {}
  void OnDone() override { delete this; }

 private:
  const CallTracker::Call call_;
};

// A call that is answered at once.
grpc::ServerUnaryReactor* Answer(CallTracker& calls, const absl::Status& status) {
  auto* reactor = new UnaryCall(calls);
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

grpc::ServerUnaryReactor* AnswerStore(CallTracker& calls, const absl::StatusOr<StoreInfo>& info,
                                      v1::Store* response) {
  if (info.ok()) *response = EncodeStore(*info);
  return Answer(calls, info.status());
}

absl::Status ListPage(Engine& engine, const v1::ListStoresRequest& request,
                      v1::ListStoresResponse& response) {
  if (request.page_size() < 0) {
    return InvalidOption("page_size", "must not be negative");
  }
  // A token is the last name of the page before.
  const std::string& token = request.page_token();
  if (!token.empty() && !absl::StartsWith(token, request.prefix())) {
    return InvalidOption("page_token", "is not one that this prefix's listing returned");
  }
  const std::int64_t page_size =
      request.page_size() == 0 ? kListPageSizeDefault
                               : std::min<std::int64_t>(request.page_size(), kListPageSizeMax);
  const ListResult result = engine.ListStores(request.prefix(), token, page_size);
  for (const StoreInfo& info : result.stores) *response.add_stores() = EncodeStore(info);
  if (result.more) response.set_next_page_token(result.stores.back().config.name);
  return absl::OkStatus();
}

// A call that scans and may be cancelled. Deletes itself when the call is over.
class ScanCall final : public grpc::ServerUnaryReactor {
 public:
  ScanCall(CallTracker& calls, const grpc::CallbackServerContext& context)
      : call_(calls), cancel_(std::make_shared<CancelToken>(DeadlineOf(context))) {}

  const std::shared_ptr<CancelToken>& cancel() const { return cancel_; }
  void OnCancel() override { cancel_->Cancel(); }
  void OnDone() override { delete this; }

 private:
  const CallTracker::Call call_;
  const std::shared_ptr<CancelToken> cancel_;
};

}  // namespace

grpc::ServerUnaryReactor* SoftLookupService::CreateStore(grpc::CallbackServerContext*,
                                                         const v1::CreateStoreRequest* request,
                                                         v1::Store* response) {
  const absl::StatusOr<StoreConfig> config = DecodeStore(request->store());
  if (!config.ok()) return Answer(calls_, config.status());
  return AnswerStore(calls_, engine_.CreateStore(*config), response);
}

grpc::ServerUnaryReactor* SoftLookupService::GetStore(grpc::CallbackServerContext*,
                                                      const v1::GetStoreRequest* request,
                                                      v1::Store* response) {
  return AnswerStore(calls_, engine_.GetStore(request->name()), response);
}

grpc::ServerUnaryReactor* SoftLookupService::ListStores(grpc::CallbackServerContext*,
                                                        const v1::ListStoresRequest* request,
                                                        v1::ListStoresResponse* response) {
  return Answer(calls_, ListPage(engine_, *request, *response));
}

grpc::ServerUnaryReactor* SoftLookupService::UpdateStore(grpc::CallbackServerContext*,
                                                         const v1::UpdateStoreRequest* request,
                                                         v1::Store* response) {
  const absl::StatusOr<StoreUpdate> update = DecodeUpdate(*request);
  if (!update.ok()) return Answer(calls_, update.status());
  return AnswerStore(calls_, engine_.UpdateStore(request->store().name(), *update), response);
}

grpc::ServerUnaryReactor* SoftLookupService::DeleteStore(grpc::CallbackServerContext*,
                                                         const v1::DeleteStoreRequest* request,
                                                         v1::DeleteStoreResponse*) {
  return Answer(calls_, engine_.DeleteStore(request->name()));
}

grpc::ServerUnaryReactor* SoftLookupService::Append(grpc::CallbackServerContext*,
                                                    const v1::AppendRequest* request,
                                                    v1::AppendResponse* response) {
  auto* reactor = new UnaryCall(calls_);
  const absl::Status status = StartAppend(*request, *response, *reactor);
  if (!status.ok()) reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

absl::Status SoftLookupService::StartAppend(const v1::AppendRequest& request,
                                            v1::AppendResponse& response,
                                            grpc::ServerUnaryReactor& reactor) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckMessageBytes(request, engine_.limits().message_bytes_max));
  DecodedAppend decoded;
  SOFTLOOKUP_RETURN_IF_ERROR(DecodeAppend(request, kNoStore, decoded));
  engine_.Append(decoded.request, [sequence = request.sequence(), &response,
                                   &reactor](absl::StatusOr<AppendResult> result) {
    if (result.ok()) EncodeAppend(sequence, *result, response);
    reactor.Finish(ToGrpcStatus(result.status()));
  });
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* SoftLookupService::GetWriter(grpc::CallbackServerContext*,
                                                       const v1::GetWriterRequest* request,
                                                       v1::Writer* response) {
  const absl::StatusOr<WriterInfo> writer = engine_.GetWriter(request->store(), request->writer());
  if (writer.ok()) {
    response->set_writer(request->writer());
    response->set_last_sequence(writer->last_sequence);
    response->set_last_position(writer->last_position);
  }
  return Answer(calls_, writer.status());
}

grpc::ServerBidiReactor<v1::AppendRequest, v1::AppendResponse>* SoftLookupService::StreamAppend(
    grpc::CallbackServerContext*) {
  return AppendStream::Start(calls_, engine_);
}

grpc::ServerWriteReactor<v1::ReadRowsResponse>* SoftLookupService::ReadRows(
    grpc::CallbackServerContext*, const v1::ReadRowsRequest* request) {
  return RowStream::Start(calls_, engine_, *request);
}

grpc::ServerUnaryReactor* SoftLookupService::DeleteRows(grpc::CallbackServerContext*,
                                                        const v1::DeleteRowsRequest* request,
                                                        v1::DeleteRowsResponse* response) {
  const absl::StatusOr<RowFilter> filter = DecodeFilter(request->filter());
  if (!filter.ok()) return Answer(calls_, filter.status());
  const absl::StatusOr<DeleteRowsResult> result = engine_.DeleteRows(request->store(), *filter);
  if (result.ok()) {
    response->set_deleted_count(result->deleted_count);
    response->set_revision(result->revision);
  }
  return Answer(calls_, result.status());
}

grpc::ServerUnaryReactor* SoftLookupService::Lookup(grpc::CallbackServerContext* context,
                                                    const v1::LookupRequest* request,
                                                    v1::LookupResponse* response) {
  auto* call = new ScanCall(calls_, *context);
  const std::int64_t bytes_max = engine_.limits().message_bytes_max;
  const auto decoded = std::make_shared<DecodedLookup>();
  absl::Status status = CheckMessageBytes(*request, bytes_max);
  if (status.ok()) status = DecodeLookup(*request, kNoStore, *decoded);
  if (!status.ok()) {
    call->Finish(ToGrpcStatus(status));
    return call;
  }
  engine_.Lookup(decoded->request, call->cancel(), [=](absl::StatusOr<LookupResult> result) {
    absl::Status status = result.status();
    if (status.ok()) status = EncodeLookup(*request, *result, bytes_max, *response);
    decoded->request = {};  // It lives at least as long as this.
    call->Finish(ToGrpcStatus(status));
  });
  return call;
}

grpc::ServerUnaryReactor* SoftLookupService::Attend(grpc::CallbackServerContext* context,
                                                    const v1::AttendRequest* request,
                                                    v1::AttendResponse* response) {
  auto* call = new ScanCall(calls_, *context);
  const std::int64_t bytes_max = engine_.limits().message_bytes_max;
  const auto decoded = std::make_shared<DecodedAttend>();
  absl::Status status = CheckMessageBytes(*request, bytes_max);
  if (status.ok()) status = DecodeAttend(*request, *decoded);
  if (!status.ok()) {
    call->Finish(ToGrpcStatus(status));
    return call;
  }
  engine_.Attend(decoded->request, call->cancel(), [=](absl::StatusOr<LookupResult> result) {
    absl::Status status = result.status();
    if (status.ok()) status = EncodeAttend(*request, *result, bytes_max, *response);
    decoded->request = {};  // It lives at least as long as this.
    call->Finish(ToGrpcStatus(status));
  });
  return call;
}

grpc::ServerBidiReactor<v1::LookupRequest, v1::LookupResponse>* SoftLookupService::StreamLookup(
    grpc::CallbackServerContext* context) {
  return LookupStream::Start(calls_, engine_, DeadlineOf(*context));
}

grpc::ServerUnaryReactor* SoftLookupService::GetMemory(grpc::CallbackServerContext*,
                                                       const v1::GetMemoryRequest* request,
                                                       v1::Memory* response) {
  const absl::StatusOr<MemoryState> memory =
      engine_.GetMemory(request->store(), request->name(),
                        request->has_begin() ? std::optional(request->begin()) : std::nullopt,
                        request->has_end() ? std::optional(request->end()) : std::nullopt);
  if (memory.ok()) EncodeMemory(*memory, *response);
  return Answer(calls_, memory.status());
}

grpc::ServerWriteReactor<v1::Memory>* SoftLookupService::WatchMemory(
    grpc::CallbackServerContext*, const v1::WatchMemoryRequest* request) {
  return WatchStream::Start(calls_, engine_, *request);
}

}  // namespace softlookup::server
