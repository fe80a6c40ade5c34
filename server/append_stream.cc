#include "server/append_stream.h"

#include <utility>

#include "core/base/status_macros.h"
#include "server/admission.h"
#include "server/codec.h"
#include "server/status.h"

namespace softlookup::server {

AppendStream* AppendStream::Start(CallTracker& calls, const CallInfo& info, Engine& engine) {
  const std::shared_ptr<AppendStream> stream(new AppendStream(calls, info, engine));
  stream->self_ = stream;
  stream->StartRead(&stream->request_);
  calls.AddStream(stream);
  return stream.get();
}

void AppendStream::OnReadDone(bool ok) {
  const SteadyTime begin = std::chrono::steady_clock::now();
  absl::Status status;
  if (ok) status = Apply(begin);
  {
    absl::MutexLock lock(&mutex_);
    reading_ = applying_ = false;
    if (!ok || !status.ok()) reads_over_ = true;
    if (failure_.ok()) {
      failure_ = status;
      failure_begin_ = begin;
    }
  }
  Proceed();
}

absl::Status AppendStream::Apply(SteadyTime begin) {
  {
    absl::MutexLock lock(&mutex_);
    if (finished_ || !failure_.ok()) return absl::OkStatus();  // Later requests are not applied.
    applying_ = true;
  }
  SOFTLOOKUP_RETURN_IF_ERROR(CheckMessageBytes(request_, engine_.limits().message_bytes_max));
  const std::string& store = request_.store().empty() ? store_ : request_.store();
  SOFTLOOKUP_RETURN_IF_ERROR(tenants_.Admit(store, RowsOf(request_, engine_.limits())));
  DecodedAppend decoded;
  SOFTLOOKUP_RETURN_IF_ERROR(DecodeAppend(request_, store_, decoded));
  if (store_.empty()) store_ = request_.store();
  decoded.request.chain = chain_;
  decoded.request.deadline = deadline_;
  const std::size_t request_bytes = request_.ByteSizeLong();
  {
    absl::MutexLock lock(&mutex_);
    budget_.OnRead(request_bytes);
    awaits_turn_ = true;
    ++unacknowledged_;
  }
  engine_.Append(
      decoded.request,
      [self = shared_from_this(), begin, sequence = request_.sequence(), request_bytes](
          auto result) { self->Acknowledge(begin, sequence, request_bytes, std::move(result)); },
      [self = shared_from_this()] { self->OnTurn(); });
  return absl::OkStatus();
}

void AppendStream::OnTurn() {
  {
    absl::MutexLock lock(&mutex_);
    awaits_turn_ = false;
  }
  Proceed();
}

void AppendStream::Acknowledge(SteadyTime begin, std::uint64_t sequence, std::size_t request_bytes,
                               absl::StatusOr<AppendResult> result) {
  Acknowledgement acknowledgement;
  if (result.ok()) {
    call_.observer().OnAnswer(call_.info(), begin, result.status());
    EncodeAppend(sequence, *result, acknowledgement.response);
    acknowledgement.bytes = acknowledgement.response.ByteSizeLong();
  }
  {
    absl::MutexLock lock(&mutex_);
    --unacknowledged_;
    budget_.OnAnswer(request_bytes, acknowledgement.bytes);
    if (result.ok()) {
      responses_.push_back(std::move(acknowledgement));
    } else {
      // Acknowledgements come in order, and a request that could not be read comes after them all.
      if (!append_failed_) {
        failure_ = result.status();
        failure_begin_ = begin;
      }
      append_failed_ = reads_over_ = true;
    }
  }
  Proceed();
}

void AppendStream::Proceed() {
  bool read = false, write = false, finish = false;
  grpc::Status status;
  {
    absl::MutexLock lock(&mutex_);
    if (finished_) return;
    if (broken_) responses_.clear();
    if (!reading_ && !awaits_turn_ && !reads_over_ && !broken_ && !draining_ && budget_.HasRoom()) {
      read = reading_ = true;
    }
    if (!writing_ && !responses_.empty()) {
      write = writing_ = true;
      response_ = std::move(responses_.front());
      responses_.pop_front();
    }
    const bool idle = !applying_ && !writing_ && unacknowledged_ == 0 && responses_.empty();
    if (idle && !reading_ && (reads_over_ || broken_)) {
      finish = finished_ = true;
      if (!failure_.ok()) call_.observer().OnAnswer(call_.info(), failure_begin_, failure_);
      status = ToGrpcStatus(failure_, call_.info().context);
    } else if (idle && draining_) {
      finish = finished_ = true;
      status = call_.CutStream(ShuttingDown());
    }
  }
  if (read) StartRead(&request_);
  if (write) {
    writes_.OnStart();
    StartWrite(&response_.response);
  }
  if (finish) Finish(status);
}

void AppendStream::Drain() {
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
  }
  Proceed();
}

void AppendStream::OnWriteDone(bool ok) {
  writes_.OnDone();
  {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    budget_.OnWritten(response_.bytes);
    if (!ok) broken_ = true;
  }
  Proceed();
}

}  // namespace softlookup::server
