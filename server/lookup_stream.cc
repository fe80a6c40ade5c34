#include "server/lookup_stream.h"

#include <utility>
#include <vector>

#include "server/admission.h"
#include "server/status.h"

namespace softlookup::server {

LookupStream* LookupStream::Start(CallTracker& calls, const CallInfo& info, Engine& engine) {
  const std::shared_ptr<LookupStream> stream(new LookupStream(calls, info, engine));
  stream->self_ = stream;
  stream->Proceed();
  calls.AddStream(stream);
  return stream.get();
}

void LookupStream::OnReadDone(bool ok) {
  Slot* slot = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    reading_ = false;
    if (ok && !finished_) {
      slot = slots_.back().get();
      slot->request_bytes = slot->request.ByteSizeLong();
      budget_.OnRead(slot->request_bytes);
    } else {
      slots_.pop_back();
      reads_over_ = true;
    }
  }
  if (slot != nullptr) Look(*slot);
  Proceed();
}

void LookupStream::Look(Slot& slot) {
  slot.begin = std::chrono::steady_clock::now();
  absl::Status status = CheckMessageBytes(slot.request, engine_.limits().message_bytes_max);
  const std::string& store = slot.request.store().empty() ? store_ : slot.request.store();
  if (status.ok()) status = CheckRoom(engine_, store, slot.request);
  if (status.ok()) status = tenants_.Admit(store, QueriesOf(slot.request, engine_.limits()));
  if (status.ok()) status = DecodeLookup(slot.request, store_, slot.decoded);
  if (store_.empty()) store_ = slot.request.store();
  slot.store = slot.request.store().empty() ? store_ : slot.request.store();
  if (!status.ok()) return Answer(slot, status);
  slot.decoded.request.report = &slot.report;
  engine_.Lookup(
      std::move(slot.decoded.request), slot.cancel,
      [self = shared_from_this(), &slot](auto result) { self->Answer(slot, std::move(result)); });
}

void LookupStream::Answer(Slot& slot, absl::StatusOr<LookupResult> result) {
  absl::Status status = result.status();
  if (status.ok()) {
    status = EncodeLookup(slot.request, *result, engine_.limits().message_bytes_max, slot.response);
  }
  if (!status.ok()) {
    slot.response.Clear();
    slot.response.set_tag(slot.request.tag());
    *slot.response.mutable_error() = ToLookupError(status);
  }
  call_.observer().OnLookup(call_.info(), slot.begin, status,
                            {.request = slot.request,
                             .store = slot.store,
                             .result = result.ok() ? &*result : nullptr,
                             .report = slot.report});
  // A response may wait for long; nothing looks at its request any more.
  slot.request = {};
  slot.decoded = {};
  slot.response_bytes = slot.response.ByteSizeLong();
  {
    absl::MutexLock lock(&mutex_);
    budget_.OnAnswer(slot.request_bytes, slot.response_bytes);
    slot.answered = true;
  }
  Proceed();
}

void LookupStream::Proceed() {
  Slot *read = nullptr, *write = nullptr;
  bool finish = false;
  grpc::Status status;
  {
    absl::MutexLock lock(&mutex_);
    if (finished_) return;
    while (broken_ && !writing_ && !slots_.empty() && slots_.front()->answered) PopFront();
    if (!reading_ && !reads_over_ && !broken_ && !draining_ && budget_.HasRoom()) {
      reading_ = true;
      read = slots_.emplace_back(std::make_unique<Slot>()).get();
      read->cancel = std::make_shared<CancelToken>(deadline_);
    }
    if (!writing_ && !slots_.empty() && slots_.front()->answered) {
      writing_ = true;
      write = slots_.front().get();
    }
    const bool idle = slots_.size() == (reading_ ? 1 : 0);
    if (idle && !reading_ && (reads_over_ || broken_)) {
      finish = finished_ = true;
    } else if (idle && draining_) {
      finish = finished_ = true;
      status = call_.CutStream(ShuttingDown());
    }
  }
  if (read != nullptr) StartRead(&read->request);
  if (write != nullptr) {
    writes_.OnStart();
    StartWrite(&write->response);
  }
  if (finish) Finish(status);
}

void LookupStream::PopFront() {
  budget_.OnWritten(slots_.front()->response_bytes);
  slots_.pop_front();
}

void LookupStream::Drain() {
  std::vector<std::shared_ptr<CancelToken>> cancels;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    for (const auto& slot : slots_) cancels.push_back(slot->cancel);
  }
  for (const auto& cancel : cancels) cancel->EndSleep(ShuttingDown());
  Proceed();
}

void LookupStream::OnWriteDone(bool ok) {
  writes_.OnDone();
  {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    PopFront();
    if (!ok) broken_ = true;
  }
  Proceed();
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

}  // namespace softlookup::server
