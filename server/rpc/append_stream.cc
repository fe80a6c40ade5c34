#include "server/rpc/append_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "server/rpc/admission.h"
#include "server/rpc/codec.h"
#include "server/rpc/status.h"
#include "server/rpc/store_limits.h"
#include "server/rpc/unary_call.h"

namespace softlookup::server {

void AppendStream::Start(std::unique_ptr<Call> call, Engine& engine) {
  const std::shared_ptr<AppendStream> stream(new AppendStream(std::move(call), engine));
  stream->self_ = stream;
  stream->call_->rpc().Attach(*stream);
  stream->arrival_.OnStart();
  stream->Proceed();
  stream->call_->streams().Add(stream);
}

void AppendStream::OnReadDone(bool ok) {
  arrival_.OnDone();
  {
    absl::MutexLock lock(&mutex_);
    // Requests after a failed one, or after the server has cut the stream, are not applied.
    const bool is_ignored = finished_ || !failure_.ok() || !cut_.ok();
    if (!ok || is_ignored) {
      reading_ = false;
      reads_over_ = true;
      return ProceedLocked();
    }
    applying_ = true;
  }
  if (bytes_.Length() <= kNetworkThreadParseBytesMax) return HandleRequest();
  call_->limiters().workers.PostNext(call_->turn(),
                                     [self = shared_from_this()] { self->HandleRequest(); });
}

void AppendStream::HandleRequest() {
  const SteadyTime begin = std::chrono::steady_clock::now();
  const std::uint64_t number = ++request_count_;
  const absl::Status status = Apply(number, begin);
  absl::MutexLock lock(&mutex_);
  reading_ = applying_ = false;
  if (!status.ok()) Fail(number, status, begin);
  ProceedLocked();
}

absl::Status AppendStream::CheckStore(const std::string& store) {
  if (store_.empty()) store_ = store;
  if (store.empty() || store == store_) return absl::OkStatus();
  return InvalidOption("store", absl::StrCat("the stream appends to \"", store_, "\" alone"));
}

void AppendStream::Fail(std::uint64_t number, const absl::Status& status, SteadyTime begin) {
  reads_over_ = true;
  if (number >= failed_request_) return;
  failed_request_ = number;
  failure_ = status;
  failure_begin_ = begin;
}

absl::Status AppendStream::Apply(std::uint64_t number, SteadyTime begin) {
  v1::AppendRequest request;
  MessageCharge charge;
  const std::size_t request_bytes = bytes_.Length();
  SOFTLOOKUP_RETURN_IF_ERROR(call_->gate().AdmitNext());
  SOFTLOOKUP_RETURN_IF_ERROR(call_->Receive(bytes_, request, charge));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStore(request.store()));
  SOFTLOOKUP_RETURN_IF_ERROR(call_->gate().Enter(store_, RowsOf(request, engine_.limits())));
  SOFTLOOKUP_RETURN_IF_ERROR(
      CheckStoreGrowth(engine_, call_->gate().caller(), static_cast<std::int64_t>(request_bytes)));
  DecodedAppend decoded;
  SOFTLOOKUP_RETURN_IF_ERROR(DecodeAppend(request, store_, decoded));
  decoded.request.chain = chain_;
  decoded.request.deadline = call_->deadline();
  {
    absl::MutexLock lock(&mutex_);
    budget_.OnRead(request_bytes);
    awaits_turn_ = true;
    ++unacknowledged_;
  }
  // The engine copies what it keeps of the request, and counts the bytes of its copy itself. So
  // `request` and `charge` may end with this function.
  engine_.Append(
      decoded.request,
      [self = shared_from_this(), number, begin, sequence = request.sequence(),
       request_bytes](auto result) {
        self->Acknowledge(number, begin, sequence, request_bytes, std::move(result));
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
                               std::size_t request_bytes, absl::StatusOr<AppendResult> result) {
  Acknowledgement acknowledgement;
  if (result.ok()) {
    call_->reporter().AnswerMessage(begin, result.status());
    call_->auditor().CountChange(result->appended_count);
    v1::AppendResponse response;
    EncodeAppend(sequence, *result, response);
    acknowledgement.response = BytesOf(response);
    acknowledgement.bytes = acknowledgement.response.Length();
  }
  absl::MutexLock lock(&mutex_);
  --unacknowledged_;
  budget_.OnAnswer(request_bytes, acknowledgement.bytes);
  if (result.ok()) {
    responses_.push_back(std::move(acknowledgement));
  } else {
    Fail(number, result.status(), begin);
  }
  ProceedLocked();
}

void AppendStream::Proceed() {
  absl::MutexLock lock(&mutex_);
  ProceedLocked();
}

void AppendStream::ProceedLocked() {
  if (finished_) return;
  if (broken_) responses_.clear();
  const bool ends = reads_over_ || broken_ || !cut_.ok();
  if (!reading_ && !awaits_turn_ && !ends && budget_.MayRead()) {
    reading_ = true;
    call_->rpc().StartRead(&bytes_);
  }
  if (!writing_ && !responses_.empty()) {
    writing_ = true;
    written_bytes_ = responses_.front().bytes;
    writes_.OnStart();
    call_->rpc().StartWrite(responses_.front().response);
    responses_.pop_front();
  }
  const bool is_idle = !applying_ && !writing_ && unacknowledged_ == 0 && responses_.empty();
  // If the server cuts the stream, a read may still be in progress. The read ends with the call.
  if (!is_idle || !ends || (reading_ && cut_.ok())) return;
  finished_ = true;
  if (!failure_.ok()) {
    call_->reporter().AnswerMessage(failure_begin_, failure_);
    return call_->rpc().Finish(call_->reporter().EndStream(failure_));
  }
  call_->rpc().Finish(cut_.ok() ? call_->reporter().EndStream(cut_)
                                : call_->reporter().CutStream(cut_));
}

void AppendStream::OnWriteDone(bool ok) {
  writes_.OnDone();
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  budget_.OnWritten(written_bytes_);
  if (!ok) broken_ = true;
  ProceedLocked();
}

void AppendStream::OnDone() {
  arrival_.End();
  writes_.End();
  self_.reset();
}

void AppendStream::Recheck() {
  const absl::Status status = call_->gate().Recheck();
  if (!status.ok()) Cut(status);
}

void AppendStream::Cut(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (cut_.ok()) cut_ = status;
  ProceedLocked();
}

}  // namespace softlookup::server
