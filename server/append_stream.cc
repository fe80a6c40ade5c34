#include "server/append_stream.h"

#include <utility>

#include "core/base/status_macros.h"
#include "server/codec.h"
#include "server/status.h"

namespace softlookup::server {
namespace {

// Appends in progress and responses not yet written. Beyond it the next request stays unread, and
// HTTP/2 flow control slows the sender down.
constexpr std::size_t kPipelineMax = 64;

}  // namespace

AppendStream* AppendStream::Start(CallTracker& calls, Engine& engine) {
  const std::shared_ptr<AppendStream> stream(new AppendStream(calls, engine));
  stream->self_ = stream;
  stream->StartRead(&stream->request_);
  calls.AddStream(stream);
  return stream.get();
}

void AppendStream::OnReadDone(bool ok) {
  absl::Status status;
  if (ok) status = Apply();
  {
    absl::MutexLock lock(&mutex_);
    reading_ = false;
    if (!ok || !status.ok()) reads_over_ = true;
    if (failure_.ok()) failure_ = status;
  }
  Proceed();
}

absl::Status AppendStream::Apply() {
  {
    absl::MutexLock lock(&mutex_);
    if (finished_ || !failure_.ok()) return absl::OkStatus();  // Later requests are not applied.
  }
  SOFTLOOKUP_RETURN_IF_ERROR(CheckMessageBytes(request_, engine_.limits().message_bytes_max));
  DecodedAppend decoded;
  SOFTLOOKUP_RETURN_IF_ERROR(DecodeAppend(request_, store_, decoded));
  if (store_.empty()) store_ = request_.store();
  decoded.request.chain = chain_;
  {
    absl::MutexLock lock(&mutex_);
    ++unacknowledged_;
  }
  engine_.Append(decoded.request,
                 [self = shared_from_this(), sequence = request_.sequence()](auto result) {
                   self->Acknowledge(sequence, std::move(result));
                 });
  return absl::OkStatus();
}

void AppendStream::Acknowledge(std::uint64_t sequence, absl::StatusOr<AppendResult> result) {
  {
    absl::MutexLock lock(&mutex_);
    --unacknowledged_;
    if (result.ok()) {
      EncodeAppend(sequence, *result, responses_.emplace_back());
    } else {
      // Acknowledgements come in order, and a request that could not be read comes after them all.
      if (!append_failed_) failure_ = result.status();
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
    if (!reading_ && !reads_over_ && !broken_ &&
        responses_.size() + static_cast<std::size_t>(unacknowledged_) < kPipelineMax) {
      read = reading_ = true;
    }
    if (!writing_ && !responses_.empty()) {
      write = writing_ = true;
      response_ = std::move(responses_.front());
      responses_.pop_front();
    }
    const bool idle = !writing_ && unacknowledged_ == 0 && responses_.empty();
    if (idle && !reading_ && (reads_over_ || broken_)) {
      finish = finished_ = true;
      status = ToGrpcStatus(failure_);
    } else if (idle && reading_ && draining_) {
      finish = finished_ = true;
      status = ToGrpcStatus(ShuttingDown());
    }
  }
  if (read) StartRead(&request_);
  if (write) StartWrite(&response_);
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
  {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) broken_ = true;
  }
  Proceed();
}

}  // namespace softlookup::server
