#include "server/rpc/watch_stream.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "server/rpc/alarm.h"
#include "server/rpc/codec.h"
#include "server/rpc/message_buffer.h"
#include "server/rpc/status.h"

namespace softlookup::server {

void WatchStream::Start(std::unique_ptr<Call> call, Engine& engine) {
  const std::shared_ptr<WatchStream> stream(new WatchStream(std::move(call), engine));
  stream->Begin();
}

void WatchStream::OnRead(bool ok) {
  if (!ok) return Finish(MalformedMessage());
  HandleMessage([self = shared_from_this()] {
    const absl::Status status = self->Open();
    if (!status.ok()) return self->Finish(status);
    self->Send();
  });
}

absl::Status WatchStream::Open() {
  v1::WatchMemoryRequest request;
  MessageCharge charge;
  SOFTLOOKUP_RETURN_IF_ERROR(call().Receive(bytes(), request, charge));
  SOFTLOOKUP_RETURN_IF_ERROR(call().gate().Enter(request.store()));
  store_ = request.store();
  name_ = request.name();
  interval_ = absl::Milliseconds(request.min_interval_ms());
  return absl::OkStatus();
}

void WatchStream::Send() {
  const absl::StatusOr<MemoryState> memory =
      engine_.GetMemory(store_, name_, std::nullopt, std::nullopt);
  if (!memory.ok()) {
    return Finish(memory.status());
  }
  // Another store has the name now. The wait ends the call with the engine's error for that.
  if (incarnation_.value_or(memory->incarnation) != memory->incarnation) return WaitForChange();
  incarnation_ = memory->incarnation;
  revision_ = memory->revision;
  // The memory is as before: not every revision adds rows.
  if (end_ == memory->end) return WaitForChange();
  end_ = memory->end;
  sent_ = absl::Now();
  v1::Memory message;
  EncodeMemory(*memory, message);
  StartWrite(BytesOf(message));
}

void WatchStream::OnWritten(bool ok) {
  if (!ok) End(absl::CancelledError("The caller is gone"));
  WaitForChange();
}

void WatchStream::WaitForChange() {
  // If End() has cancelled the token, the wait ends as soon as it begins.
  engine_.WhenRevision(store_, *incarnation_, revision_ + 1, cancel_,
                       [self = shared_from_this()](const absl::Status& status) {
                         if (status.ok()) return self->WaitForInterval();
                         absl::Status end_status;
                         {
                           absl::MutexLock lock(&self->mutex_);
                           end_status = self->end_status_;
                         }
                         self->Finish(end_status.ok() ? status : end_status);
                       });
}

void WatchStream::WaitForInterval() {
  absl::Status end_status;
  {
    absl::MutexLock lock(&mutex_);
    end_status = end_status_;
    if (end_status.ok()) {
      SetAlarm(alarm_, std::max(absl::Now(), sent_ + interval_),
               [self = shared_from_this()](bool is_time) {
                 if (is_time) return self->Send();
                 // End() has cancelled the alarm. The next wait ends the call.
                 self->WaitForChange();
               });
    }
  }
  if (!end_status.ok()) Finish(end_status);
}

void WatchStream::End(const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    if (end_status_.ok()) end_status_ = status;
    alarm_.Cancel();
  }
  cancel_->Cancel();
}

void WatchStream::Drain() { End(ShuttingDown()); }

void WatchStream::Recheck() {
  const absl::Status status = call().gate().Recheck();
  if (!status.ok()) End(status);
}

}  // namespace softlookup::server
