#include "server/service.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "server/admission.h"
#include "server/append_stream.h"
#include "server/call.h"
#include "server/codec.h"
#include "server/lookup_stream.h"
#include "server/row_stream.h"
#include "server/status.h"
#include "server/unary_call.h"
#include "server/watch_stream.h"

namespace softlookup::server {
namespace {

// Only on a stream may a request leave its store out.
const std::string kNoStore;

// A stream of answers that ends before the first. Deletes itself when the call is over.
template <typename Response>
class RefusedStream final : public grpc::ServerWriteReactor<Response> {
 public:
  RefusedStream(CallTracker& calls, const CallInfo& info, const absl::Status& status)
      : call_(calls, info) {
    this->Finish(call_.Answer(status));
  }
  void OnDone() override { delete this; }

 private:
  const CallTracker::Call call_;
};

// What a lookup needs until it is answered.
struct UnaryLookup {
  DecodedLookup decoded;
  LookupReport report;
};

absl::Status CreateStoreOf(Engine& engine, const v1::Store& store, v1::Store& response) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const StoreConfig config, DecodeStore(store));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreBytes(config, engine.limits().message_bytes_max));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const StoreInfo info, engine.CreateStore(config));
  response = EncodeStore(info);
  return absl::OkStatus();
}

absl::Status Update(Engine& engine, const v1::UpdateStoreRequest& request, v1::Store& response) {
  const std::string& name = request.store().name();
  SOFTLOOKUP_ASSIGN_OR_RETURN(const StoreUpdate update, DecodeUpdate(request));
  if (update.projection || update.labels) {
    // If there is no such store, the update says so.
    if (absl::StatusOr<StoreInfo> info = engine.GetStore(name); info.ok()) {
      if (update.projection) info->config.projection = *update.projection;
      if (update.labels) info->config.labels = *update.labels;
      SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreBytes(info->config, engine.limits().message_bytes_max));
    }
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(const StoreInfo info, engine.UpdateStore(name, update));
  response = EncodeStore(info);
  return absl::OkStatus();
}

// Leaves the numbers of its matrices out; their shapes stay.
void LeaveNumbersOut(v1::Store& store) {
  for (v1::MemorySpec& memory : *store.mutable_memories()) {
    if (memory.has_gate()) memory.mutable_gate()->clear_data();
  }
  if (!store.has_projection()) return;
  v1::Projection& projection = *store.mutable_projection();
  for (v1::Matrix* matrix :
       {projection.mutable_query(), projection.mutable_key(), projection.mutable_value()}) {
    matrix->clear_data();
  }
}

// The bytes in a message of a string or message of `bytes`: a tag, its length and itself.
std::size_t FieldBytes(std::size_t bytes) {
  return 1 + google::protobuf::io::CodedOutputStream::VarintSize64(bytes) + bytes;
}

absl::Status ListPage(Engine& engine, const v1::ListStoresRequest& request,
                      v1::ListStoresResponse& response) {
  if (request.page_size() < 0) {
    return InvalidOption("page_size", "must not be negative");
  }
  // A token is the last name of the page before.
  std::string last = request.page_token();
  if (!last.empty() && !absl::StartsWith(last, request.prefix())) {
    return InvalidOption("page_token", "is not one that this prefix's listing returned");
  }
  const int page_size =
      request.page_size() == 0
          ? static_cast<int>(kListPageSizeDefault)
          : static_cast<int>(std::min<std::int64_t>(request.page_size(), kListPageSizeMax));
  const auto bytes_max = static_cast<std::size_t>(engine.limits().message_bytes_max);
  std::size_t bytes = 0;  // Of the stores in the answer.
  while (response.stores_size() < page_size) {
    // One by one, since a store may be nearly as large as a page.
    SOFTLOOKUP_ASSIGN_OR_RETURN(const ListResult next,
                                engine.ListStores(request.prefix(), last, 1));
    if (next.stores.empty()) return absl::OkStatus();
    v1::Store store = EncodeStore(next.stores.front());
    // If the page ends here, the name is its token.
    const std::size_t token_bytes = FieldBytes(store.name().size());
    if (FieldBytes(store.ByteSizeLong()) + token_bytes > bytes_max) {
      // From when the limit was higher. It must not hide those behind it.
      LeaveNumbersOut(store);
    }
    bytes += FieldBytes(store.ByteSizeLong());
    if (bytes + token_bytes > bytes_max && response.stores_size() > 0) break;
    last = store.name();
    *response.add_stores() = std::move(store);
    if (!next.more) return absl::OkStatus();
  }
  response.set_next_page_token(last);
  return absl::OkStatus();
}

// A call that scans and may be cancelled.
class ScanCall final : public UnaryCall {
 public:
  ScanCall(CallTracker& calls, const CallInfo& info)
      : UnaryCall(calls, info), cancel_(std::make_shared<CancelToken>(DeadlineOf(info.context))) {}

  const std::shared_ptr<CancelToken>& cancel() const { return cancel_; }

  // Has the call end, if it waits for a revision, when the server stops.
  void EndWaitAtDrain(CallTracker& calls) {
    wait_ = std::make_shared<Wait>(cancel_);
    calls.AddStream(wait_);
  }

  // As Answer.
  void AnswerLookup(absl::Status status, const v1::LookupResponse& response,
                    const LookupFacts& facts) {
    Hold(Kind::kRead, status, response);
    Finish(call().AnswerLookup(status, facts));
  }

  void OnCancel() override { cancel_->Cancel(); }

 private:
  class Wait final : public Stream {
   public:
    explicit Wait(std::shared_ptr<CancelToken> cancel) : cancel_(std::move(cancel)) {}
    void Drain() override { cancel_->EndSleep(ShuttingDown()); }

   private:
    const std::shared_ptr<CancelToken> cancel_;
  };

  const std::shared_ptr<CancelToken> cancel_;
  std::shared_ptr<Wait> wait_;
};

}  // namespace

grpc::ServerUnaryReactor* SoftLookupService::CreateStore(grpc::CallbackServerContext* context,
                                                         const v1::CreateStoreRequest* request,
                                                         v1::Store* response) {
  return AnswerNow(UnaryCall::Kind::kWrite, calls_, {Method::kCreateStore, *context}, engine_,
                   *request, *response, [&]() -> absl::Status {
                     SOFTLOOKUP_RETURN_IF_ERROR(Admit(request->store().name()));
                     return CreateStoreOf(engine_, request->store(), *response);
                   });
}

grpc::ServerUnaryReactor* SoftLookupService::GetStore(grpc::CallbackServerContext* context,
                                                      const v1::GetStoreRequest* request,
                                                      v1::Store* response) {
  return AnswerNow(UnaryCall::Kind::kRead, calls_, {Method::kGetStore, *context}, engine_, *request,
                   *response, [&]() -> absl::Status {
                     SOFTLOOKUP_RETURN_IF_ERROR(Admit(request->name()));
                     SOFTLOOKUP_ASSIGN_OR_RETURN(const StoreInfo info,
                                                 engine_.GetStore(request->name()));
                     *response = EncodeStore(info);
                     return CheckAnswerBytes(*response, engine_.limits().message_bytes_max);
                   });
}

grpc::ServerUnaryReactor* SoftLookupService::ListStores(grpc::CallbackServerContext* context,
                                                        const v1::ListStoresRequest* request,
                                                        v1::ListStoresResponse* response) {
  return AnswerNow(UnaryCall::Kind::kRead, calls_, {Method::kListStores, *context}, engine_,
                   *request, *response, [&] { return ListPage(engine_, *request, *response); });
}

grpc::ServerUnaryReactor* SoftLookupService::UpdateStore(grpc::CallbackServerContext* context,
                                                         const v1::UpdateStoreRequest* request,
                                                         v1::Store* response) {
  return AnswerNow(UnaryCall::Kind::kWrite, calls_, {Method::kUpdateStore, *context}, engine_,
                   *request, *response, [&]() -> absl::Status {
                     SOFTLOOKUP_RETURN_IF_ERROR(Admit(request->store().name()));
                     return Update(engine_, *request, *response);
                   });
}

grpc::ServerUnaryReactor* SoftLookupService::DeleteStore(grpc::CallbackServerContext* context,
                                                         const v1::DeleteStoreRequest* request,
                                                         v1::DeleteStoreResponse* response) {
  return AnswerNow(UnaryCall::Kind::kWrite, calls_, {Method::kDeleteStore, *context}, engine_,
                   *request, *response, [&]() -> absl::Status {
                     SOFTLOOKUP_RETURN_IF_ERROR(Admit(request->name()));
                     return engine_.DeleteStore(request->name());
                   });
}

grpc::ServerUnaryReactor* SoftLookupService::Append(grpc::CallbackServerContext* context,
                                                    const v1::AppendRequest* request,
                                                    v1::AppendResponse* response) {
  auto* reactor = new UnaryCall(calls_, {Method::kAppend, *context});
  const absl::Status status = StartAppend(*context, *request, *response, *reactor);
  if (!status.ok()) reactor->Refuse(status);
  return reactor;
}

absl::Status SoftLookupService::Admit(const std::string& store, std::int64_t rows) {
  if (calls_.is_draining()) return ShuttingDown();
  return calls_.tenants().Admit(store, rows);
}

absl::Status SoftLookupService::StartAppend(const grpc::CallbackServerContext& context,
                                            const v1::AppendRequest& request,
                                            v1::AppendResponse& response, UnaryCall& reactor) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckMessageBytes(request, engine_.limits().message_bytes_max));
  SOFTLOOKUP_RETURN_IF_ERROR(Admit(request.store(), RowsOf(request, engine_.limits())));
  DecodedAppend decoded;
  SOFTLOOKUP_RETURN_IF_ERROR(DecodeAppend(request, kNoStore, decoded));
  decoded.request.deadline = DeadlineOf(context);
  decoded.request.may_block = true;
  engine_.Append(decoded.request, [sequence = request.sequence(), &response,
                                   &reactor](absl::StatusOr<AppendResult> result) {
    if (result.ok()) EncodeAppend(sequence, *result, response);
    reactor.Answer(UnaryCall::Kind::kWrite, result.status(), response);
  });
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* SoftLookupService::GetWriter(grpc::CallbackServerContext* context,
                                                       const v1::GetWriterRequest* request,
                                                       v1::Writer* response) {
  return AnswerNow(UnaryCall::Kind::kRead, calls_, {Method::kGetWriter, *context}, engine_,
                   *request, *response, [&]() -> absl::Status {
                     SOFTLOOKUP_RETURN_IF_ERROR(Admit(request->store()));
                     SOFTLOOKUP_ASSIGN_OR_RETURN(
                         const WriterInfo writer,
                         engine_.GetWriter(request->store(), request->writer()));
                     response->set_writer(request->writer());
                     response->set_last_sequence(writer.last_sequence);
                     response->set_last_position(writer.last_position);
                     return absl::OkStatus();
                   });
}

grpc::ServerBidiReactor<v1::AppendRequest, v1::AppendResponse>* SoftLookupService::StreamAppend(
    grpc::CallbackServerContext* context) {
  return AppendStream::Start(calls_, {Method::kStreamAppend, *context}, engine_);
}

grpc::ServerWriteReactor<v1::ReadRowsResponse>* SoftLookupService::ReadRows(
    grpc::CallbackServerContext* context, const v1::ReadRowsRequest* request) {
  const CallInfo info{Method::kReadRows, *context};
  absl::Status status = CheckMessageBytes(*request, engine_.limits().message_bytes_max);
  if (status.ok()) status = Admit(request->store());
  if (!status.ok()) return new RefusedStream<v1::ReadRowsResponse>(calls_, info, status);
  return RowStream::Start(calls_, info, engine_, *request);
}

grpc::ServerUnaryReactor* SoftLookupService::DeleteRows(grpc::CallbackServerContext* context,
                                                        const v1::DeleteRowsRequest* request,
                                                        v1::DeleteRowsResponse* response) {
  return AnswerNow(UnaryCall::Kind::kWrite, calls_, {Method::kDeleteRows, *context}, engine_,
                   *request, *response, [&]() -> absl::Status {
                     SOFTLOOKUP_RETURN_IF_ERROR(Admit(request->store()));
                     SOFTLOOKUP_ASSIGN_OR_RETURN(const RowFilter filter,
                                                 DecodeFilter(request->filter()));
                     SOFTLOOKUP_ASSIGN_OR_RETURN(const DeleteRowsResult result,
                                                 engine_.DeleteRows(request->store(), filter));
                     response->set_deleted_count(result.deleted_count);
                     response->set_revision(result.revision);
                     return absl::OkStatus();
                   });
}

grpc::ServerUnaryReactor* SoftLookupService::Lookup(grpc::CallbackServerContext* context,
                                                    const v1::LookupRequest* request,
                                                    v1::LookupResponse* response) {
  auto* call = new ScanCall(calls_, {Method::kLookup, *context});
  const std::int64_t bytes_max = engine_.limits().message_bytes_max;
  const auto lookup = std::make_shared<UnaryLookup>();
  absl::Status status = CheckMessageBytes(*request, bytes_max);
  if (status.ok()) status = CheckRoom(engine_, request->store(), *request);
  if (status.ok()) status = Admit(request->store(), QueriesOf(*request, engine_.limits()));
  if (status.ok()) status = DecodeLookup(*request, kNoStore, lookup->decoded);
  if (!status.ok()) {
    call->Refuse(status);
    return call;
  }
  if (request->min_revision() > 0) call->EndWaitAtDrain(calls_);
  lookup->decoded.request.report = &lookup->report;
  // The callback keeps `lookup`, which the request has views of.
  engine_.Lookup(std::move(lookup->decoded.request), call->cancel(),
                 [=, lookup = lookup](absl::StatusOr<LookupResult> result) {
                   absl::Status status = result.status();
                   if (status.ok()) status = EncodeLookup(*request, *result, bytes_max, *response);
                   call->AnswerLookup(std::move(status), *response,
                                      {.request = *request,
                                       .store = request->store(),
                                       .result = result.ok() ? &*result : nullptr,
                                       .report = lookup->report});
                 });
  return call;
}

grpc::ServerUnaryReactor* SoftLookupService::Attend(grpc::CallbackServerContext* context,
                                                    const v1::AttendRequest* request,
                                                    v1::AttendResponse* response) {
  auto* call = new ScanCall(calls_, {Method::kAttend, *context});
  const std::int64_t bytes_max = engine_.limits().message_bytes_max;
  const auto decoded = std::make_shared<DecodedAttend>();
  absl::Status status = CheckMessageBytes(*request, bytes_max);
  if (status.ok() && calls_.is_draining()) status = ShuttingDown();
  if (status.ok()) status = DecodeAttend(*request, *decoded);
  if (!status.ok()) {
    call->Refuse(status);
    return call;
  }
  engine_.Attend(decoded->request, call->cancel(), [=](absl::StatusOr<LookupResult> result) {
    absl::Status status = result.status();
    if (status.ok()) status = EncodeAttend(*request, *result, bytes_max, *response);
    decoded->request = {};  // It lives at least as long as this.
    call->Answer(UnaryCall::Kind::kRead, std::move(status), *response);
  });
  return call;
}

grpc::ServerBidiReactor<v1::LookupRequest, v1::LookupResponse>* SoftLookupService::StreamLookup(
    grpc::CallbackServerContext* context) {
  return LookupStream::Start(calls_, {Method::kStreamLookup, *context}, engine_);
}

grpc::ServerUnaryReactor* SoftLookupService::GetMemory(grpc::CallbackServerContext* context,
                                                       const v1::GetMemoryRequest* request,
                                                       v1::Memory* response) {
  return AnswerNow(
      UnaryCall::Kind::kRead, calls_, {Method::kGetMemory, *context}, engine_, *request, *response,
      [&]() -> absl::Status {
        SOFTLOOKUP_RETURN_IF_ERROR(Admit(request->store()));
        SOFTLOOKUP_ASSIGN_OR_RETURN(
            const MemoryState memory,
            engine_.GetMemory(request->store(), request->name(),
                              request->has_begin() ? std::optional(request->begin()) : std::nullopt,
                              request->has_end() ? std::optional(request->end()) : std::nullopt));
        EncodeMemory(memory, *response);
        return CheckAnswerBytes(*response, engine_.limits().message_bytes_max);
      });
}

grpc::ServerWriteReactor<v1::Memory>* SoftLookupService::WatchMemory(
    grpc::CallbackServerContext* context, const v1::WatchMemoryRequest* request) {
  const CallInfo info{Method::kWatchMemory, *context};
  absl::Status status = CheckMessageBytes(*request, engine_.limits().message_bytes_max);
  if (status.ok()) status = Admit(request->store());
  if (!status.ok()) return new RefusedStream<v1::Memory>(calls_, info, status);
  return WatchStream::Start(calls_, info, engine_, *request);
}

}  // namespace softlookup::server
