#include "server/rpc/append_stream.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "server/rpc/admission.h"
#include "server/rpc/codec.h"
#include "server/rpc/message_buffer.h"
#include "server/rpc/store_limits.h"

namespace softlookup::server {

void AppendStream::Start(std::unique_ptr<Call> call, Engine& engine) {
  const std::shared_ptr<AppendStream> stream(new AppendStream(std::move(call), engine));
  stream->Begin();
}

void AppendStream::HandleRequest(std::uint64_t number) {
  const SteadyTimePoint begin = std::chrono::steady_clock::now();
  const absl::Status status = Apply(number, begin);
  absl::MutexLock lock(&mutex_);
  pipeline_.OnHandled();
  if (!status.ok()) Fail(number, status, begin);
  ProceedLocked();
}

absl::Status AppendStream::CheckStore(const std::string& store) {
  if (store_.empty()) store_ = store;
  if (store.empty() || store == store_) return absl::OkStatus();
  return InvalidOption("store", absl::StrCat("the stream appends to \"", store_, "\" alone"));
}

void AppendStream::Fail(std::uint64_t number, const absl::Status& status, SteadyTimePoint begin) {
  pipeline_.Drop(number);
  // The stream then ends without waiting for the read in progress. A client that awaits this
  // request's response sends nothing more.
  pipeline_.EndWith(status);
  if (number >= failed_request_) return;
  failed_request_ = number;
  failure_ = status;
  failure_begin_ = begin;
}

absl::Status AppendStream::Apply(std::uint64_t number, SteadyTimePoint begin) {
  v1::AppendRequest request;
  MessageCharge charge;
  const std::size_t request_bytes = bytes().Length();
  SOFTLOOKUP_RETURN_IF_ERROR(call().gate().AdmitNext());
  SOFTLOOKUP_RETURN_IF_ERROR(call().Receive(bytes(), request, charge));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStore(request.store()));
  SOFTLOOKUP_RETURN_IF_ERROR(call().gate().Enter(store_, RowsOf(request, engine_.limits())));
  SOFTLOOKUP_RETURN_IF_ERROR(
      CheckStoreGrowth(engine_, call().gate().caller(), static_cast<std::int64_t>(request_bytes)));
  DecodedAppend decoded;
  SOFTLOOKUP_RETURN_IF_ERROR(DecodeAppend(request, store_, decoded));
  decoded.request.chain = chain_;
  decoded.request.deadline = call().deadline();
  {
    absl::MutexLock lock(&mutex_);
    awaits_turn_ = true;
  }
  // The engine copies what it keeps of the request, and counts the bytes of its copy itself. So
  // `request` and `charge` may end with this function.
  engine_.Append(
      decoded.request,
      [this, self = shared_from_this(), number, begin, sequence = request.sequence()](auto result) {
        Acknowledge(number, begin, sequence, std::move(result));
      },
      [this, self = shared_from_this()] { OnTurn(); });
  return absl::OkStatus();
}

void AppendStream::OnTurn() {
  absl::MutexLock lock(&mutex_);
  awaits_turn_ = false;
  ProceedLocked();
}

void AppendStream::Acknowledge(std::uint64_t number, SteadyTimePoint begin, std::uint64_t sequence,
                               absl::StatusOr<AppendResult> result) {
  grpc::ByteBuffer response_bytes;
  if (result.ok()) {
    call().reporter().AnswerMessage(begin, result.status());
    call().auditor().CountChange(result->appended_count);
    v1::AppendResponse response;
    EncodeAppend(sequence, *result, response);
    response_bytes = BytesOf(response);
  }
  absl::MutexLock lock(&mutex_);
  if (result.ok()) {
    pipeline_.Answer(number, response_bytes);
  } else {
    Fail(number, result.status(), begin);
  }
  ProceedLocked();
}

grpc::Status AppendStream::ReportEnd() {
  if (failure_.ok()) return ReportCutOr(absl::OkStatus());
  call().reporter().AnswerMessage(failure_begin_, failure_);
  return call().reporter().EndStream(failure_);
}

}  // namespace softlookup::server
