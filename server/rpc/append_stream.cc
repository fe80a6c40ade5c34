#include "server/rpc/append_stream.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "server/rpc/admission.h"
#include "server/rpc/codec.h"
#include "server/rpc/message_buffer.h"
#include "server/rpc/status.h"
#include "server/rpc/store_limits.h"

namespace softlookup::server {

void AppendStream::Start(std::unique_ptr<Call> call, Engine& engine) {
  const std::shared_ptr<AppendStream> stream(new AppendStream(std::move(call), engine));
  stream->Begin();
}

void AppendStream::OnRead(bool ok) {
  std::uint64_t number = 0;
  {
    absl::MutexLock lock(&mutex_);
    // Requests after a failed one, or after the server has cut the stream, are not applied.
    if (!ok || !pipeline_.error().ok()) {
      pipeline_.OnLastReadOver();
      return ProceedLocked();
    }
    number = pipeline_.OnRequest(bytes().Length());
  }
  if (bytes().Length() <= kNetworkThreadParseBytesMax) return HandleRequest(number);
  call().limiters().workers.PostNext(
      call().turn(), [self = shared_from_this(), number] { self->HandleRequest(number); });
}

void AppendStream::HandleRequest(std::uint64_t number) {
  const SteadyTime begin = std::chrono::steady_clock::now();
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

void AppendStream::Fail(std::uint64_t number, const absl::Status& status, SteadyTime begin) {
  pipeline_.Drop(number);
  // Does not wait for the read in progress: a client that awaits this request's response sends
  // nothing more.
  pipeline_.EndWith(status);
  if (number >= failed_request_) return;
  failed_request_ = number;
  failure_ = status;
  failure_begin_ = begin;
}

absl::Status AppendStream::Apply(std::uint64_t number, SteadyTime begin) {
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
      [self = shared_from_this(), number, begin, sequence = request.sequence()](auto result) {
        self->Acknowledge(number, begin, sequence, std::move(result));
      },
      [self = shared_from_this()] { self->OnTurn(); });
  return absl::OkStatus();
}

void AppendStream::OnTurn() {
  absl::MutexLock lock(&mutex_);
  awaits_turn_ = false;
  ProceedLocked();
}

void AppendStream::Acknowledge(std::uint64_t number, SteadyTime begin, std::uint64_t sequence,
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

void AppendStream::ReadFirst() {
  absl::MutexLock lock(&mutex_);
  ProceedLocked();
}

void AppendStream::ProceedLocked() {
  const StreamPipeline::Step step = pipeline_.Next(/*may_read=*/!awaits_turn_);
  if (step.reads) StartRead();
  if (step.response != nullptr) StartWrite(*step.response);
  if (!step.ends) return;
  if (!failure_.ok()) {
    call().reporter().AnswerMessage(failure_begin_, failure_);
    return call().rpc().Finish(call().reporter().EndStream(failure_));
  }
  const absl::Status& cut = pipeline_.error();
  call().rpc().Finish(cut.ok() ? call().reporter().EndStream(cut)
                               : call().reporter().CutStream(cut));
}

void AppendStream::OnWritten(bool ok) {
  absl::MutexLock lock(&mutex_);
  pipeline_.OnWritten();
  if (!ok) pipeline_.Break();
  ProceedLocked();
}

void AppendStream::Recheck() {
  const absl::Status status = call().gate().Recheck();
  if (!status.ok()) Cut(status);
}

void AppendStream::Cut(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  pipeline_.EndWith(status);
  ProceedLocked();
}

}  // namespace softlookup::server
