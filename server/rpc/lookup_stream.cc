#include "server/rpc/lookup_stream.h"

#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "server/rpc/admission.h"
#include "server/rpc/status.h"
#include "server/rpc/unary_call.h"

namespace softlookup::server {
namespace {

// Whether a stream must end with `status` instead of OK after it has refused a lookup with
// `status`. True if the lookup's message is malformed or its caller lacks rights. Later lookups are
// still answered.
bool FailsTheStream(const absl::Status& status) {
  return ReasonOf(status) == reasons::kMalformedMessage.name || absl::IsPermissionDenied(status) ||
         absl::IsUnauthenticated(status);
}

}  // namespace

void LookupStream::Start(std::unique_ptr<Call> call, Engine& engine) {
  const std::shared_ptr<LookupStream> stream(new LookupStream(std::move(call), engine));
  stream->self_ = stream;
  stream->call_->rpc().Attach(*stream);
  stream->arrival_.OnStart();
  stream->Proceed();
  stream->call_->streams().Add(stream);
}

void LookupStream::OnReadDone(bool ok) {
  arrival_.OnDone();
  if (!ok) {
    absl::MutexLock lock(&mutex_);
    reading_ = false;
    reads_over_ = true;
    return ProceedLocked();
  }
  if (bytes_.Length() <= kNetworkThreadParseBytesMax) return HandleRequest();
  call_->limiters().workers.PostNext(call_->turn(),
                                     [self = shared_from_this()] { self->HandleRequest(); });
}

void LookupStream::HandleRequest() {
  auto owned = std::make_unique<Slot>();
  Slot& slot = *owned;
  slot.begin = std::chrono::steady_clock::now();
  slot.request_bytes = bytes_.Length();
  slot.cancel = std::make_shared<CancelToken>(call_->deadline());
  const absl::Status status = Prepare(slot);
  bytes_.Clear();
  {
    absl::MutexLock lock(&mutex_);
    reading_ = false;
    if (finished_) return;
    if (final_.ok() && FailsTheStream(status)) final_ = status;
    if (broken_) slot.cancel->Cancel();
    if (!cut_.ok()) slot.cancel->wait().End(cut_);
    slots_.push_back(std::move(owned));
    budget_.OnRead(slot.request_bytes);
    if (status.ok()) ProceedLocked();  // The next request is read while this lookup runs.
  }
  if (!status.ok()) return Answer(slot, status);
  if (slot.request.min_revision() > 0) {
    slot.revision_wait.Start(call_->limiters().limits.revision_wait_max, slot.cancel);
  }
  slot.decoded.request.report = &slot.report;
  engine_.Lookup(
      std::move(slot.decoded.request), slot.cancel,
      [self = shared_from_this(), &slot](auto result) { self->Answer(slot, std::move(result)); });
}

absl::Status LookupStream::Prepare(Slot& slot) {
  SOFTLOOKUP_RETURN_IF_ERROR(call_->gate().AdmitNext());
  SOFTLOOKUP_RETURN_IF_ERROR(call_->Receive(bytes_, slot.request, slot.charge));
  if (store_.empty()) store_ = slot.request.store();
  slot.store = slot.request.store().empty() ? store_ : slot.request.store();
  SOFTLOOKUP_RETURN_IF_ERROR(
      call_->gate().Enter(slot.store, QueriesOf(slot.request, engine_.limits())));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckRoom(engine_, slot.store, slot.request));
  return DecodeLookup(slot.request, slot.store, slot.decoded);
}

void LookupStream::Answer(Slot& slot, absl::StatusOr<LookupResult> result) {
  v1::LookupResponse response;
  absl::Status status = result.status();
  if (status.ok()) {
    status = EncodeLookup(slot.request, *result, engine_.limits().message_bytes_max, response);
  }
  if (!status.ok()) {
    response.Clear();
    response.set_tag(slot.request.tag());
    *response.mutable_error() = ToLookupError(status);
  }
  call_->reporter().AnswerLookupMessage(slot.begin, status,
                                        {.request = slot.request,
                                         .store = slot.store,
                                         .result = result.ok() ? &*result : nullptr,
                                         .report = slot.report});
  slot.response = BytesOf(response);
  slot.response_bytes = slot.response.Length();
  // Frees the request now: nothing uses it any more, and the response may wait long to be written.
  slot.request = {};
  slot.decoded = {};
  slot.charge = {};
  absl::MutexLock lock(&mutex_);
  budget_.OnAnswer(slot.request_bytes, slot.response_bytes);
  slot.answered = true;
  ProceedLocked();
}

void LookupStream::Proceed() {
  absl::MutexLock lock(&mutex_);
  ProceedLocked();
}

void LookupStream::ProceedLocked() {
  if (finished_) return;
  while (broken_ && !writing_ && !slots_.empty() && slots_.front()->answered) PopFront();
  const bool ends = reads_over_ || broken_ || !cut_.ok();
  if (!reading_ && !ends && budget_.MayRead()) {
    reading_ = true;
    call_->rpc().StartRead(&bytes_);
  }
  if (!writing_ && !slots_.empty() && slots_.front()->answered) {
    writing_ = true;
    writes_.OnStart();
    call_->rpc().StartWrite(slots_.front()->response);
  }
  if (!slots_.empty() || !ends) return;
  // If the server cuts the stream, a read may still be in progress. The read ends with the call.
  if (reading_ && cut_.ok()) return;
  finished_ = true;
  const absl::Status status = cut_.ok() ? final_ : cut_;
  call_->rpc().Finish(cut_.ok() ? call_->reporter().EndStream(status)
                                : call_->reporter().CutStream(status));
}

void LookupStream::PopFront() {
  budget_.OnWritten(slots_.front()->response_bytes);
  slots_.pop_front();
}

void LookupStream::OnWriteDone(bool ok) {
  writes_.OnDone();
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  PopFront();
  if (!ok) broken_ = true;
  ProceedLocked();
}

void LookupStream::OnCancel() {
  std::vector<std::shared_ptr<CancelToken>> cancels;
  {
    absl::MutexLock lock(&mutex_);
    broken_ = true;
    for (const auto& slot : slots_) cancels.push_back(slot->cancel);
  }
  for (const auto& cancel : cancels) cancel->Cancel();
  Proceed();
}

void LookupStream::OnDone() {
  arrival_.End();
  writes_.End();
  self_.reset();
}

void LookupStream::Drain() { EndWaits(ShuttingDown()); }

void LookupStream::Recheck() {
  const absl::Status status = call_->gate().Recheck();
  if (!status.ok()) EndWaits(status);
}

void LookupStream::EndWaits(const absl::Status& status) {
  std::vector<std::shared_ptr<CancelToken>> cancels;
  {
    absl::MutexLock lock(&mutex_);
    if (cut_.ok()) cut_ = status;
    for (const auto& slot : slots_) cancels.push_back(slot->cancel);
  }
  for (const auto& cancel : cancels) cancel->wait().End(status);
  Proceed();
}

}  // namespace softlookup::server
