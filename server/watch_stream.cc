#include "server/watch_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/error.h"
#include "server/codec.h"
#include "server/status.h"

namespace softlookup::server {

WatchStream* WatchStream::Start(CallTracker& calls, const CallInfo& info, Engine& engine,
                                const v1::WatchMemoryRequest& request) {
  const std::shared_ptr<WatchStream> stream(new WatchStream(calls, info, engine, request));
  stream->self_ = stream;
  stream->Send();
  calls.AddStream(stream);
  return stream.get();
}

WatchStream::WatchStream(CallTracker& calls, const CallInfo& info, Engine& engine,
                         const v1::WatchMemoryRequest& request)
    : call_(calls, info),
      writes_(calls.stalls(), info.context),
      engine_(engine),
      store_(request.store()),
      name_(request.name()),
      interval_(absl::Milliseconds(request.min_interval_ms())) {}

void WatchStream::Send() {
  const absl::StatusOr<MemoryState> memory =
      engine_.GetMemory(store_, name_, std::nullopt, std::nullopt);
  if (!memory.ok()) {
    Finish(call_.Answer(memory.status()));
    return;
  }
  if (incarnation_.value_or(memory->incarnation) != memory->incarnation) {
    // Deleted, and made anew under the same name.
    Finish(call_.Answer(MakeError(reasons::kStoreNotFound,
                                  absl::StrCat("The store \"", store_, "\" was deleted"),
                                  {{"store", store_}})));
    return;
  }
  incarnation_ = memory->incarnation;
  revision_ = memory->revision;
  // Not every revision adds rows.
  if (end_ == memory->end) return WaitForChange();
  end_ = memory->end;
  sent_ = absl::Now();
  EncodeMemory(*memory, message_);
  writes_.OnStart();
  StartWrite(&message_);
}

void WatchStream::OnWriteDone(bool ok) {
  writes_.OnDone();
  if (!ok) End(absl::CancelledError("The caller is gone"));
  WaitForChange();
}

void WatchStream::WaitForChange() {
  // Ends at once if the token is cancelled.
  engine_.WhenRevision(store_, *incarnation_, revision_ + 1, cancel_,
                       [self = shared_from_this()](const absl::Status& status) {
                         if (status.ok()) return self->WaitForInterval();
                         absl::Status end_status;
                         {
                           absl::MutexLock lock(&self->mutex_);
                           end_status = self->end_status_;
                         }
                         self->Finish(self->call_.Answer(end_status.ok() ? status : end_status));
                       });
}

void WatchStream::WaitForInterval() {
  absl::Status end_status;
  {
    absl::MutexLock lock(&mutex_);
    end_status = end_status_;
    if (end_status.ok()) {
      // The alarm, which is part of the stream, keeps the function, which must not keep the stream.
      alarm_.Set(absl::ToChronoTime(std::max(absl::Now(), sent_ + interval_)),
                 [weak = weak_from_this()](bool expired) {
                   const std::shared_ptr<WatchStream> self = weak.lock();
                   if (expired) return self->Send();
                   self->WaitForChange();  // Cancelled: it ends there.
                 });
    }
  }
  if (!end_status.ok()) Finish(call_.Answer(end_status));
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

}  // namespace softlookup::server
