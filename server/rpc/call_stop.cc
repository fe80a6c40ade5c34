#include "server/rpc/call_stop.h"

#include "server/rpc/status.h"

namespace softlookup::server {

void CallStop::Detach() {
  absl::MutexLock lock(&mutex_);
  call_ = nullptr;
}

void CallStop::Drain() {
  absl::MutexLock lock(&mutex_);
  End(ShuttingDown());
}

void CallStop::Recheck() {
  absl::MutexLock lock(&mutex_);
  if (call_ == nullptr) return;
  if (const absl::Status status = call_->gate().Recheck(); !status.ok()) End(status);
}

absl::Status CallStop::CauseOf(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  return absl::IsCancelled(status) && !cause_.ok() ? cause_ : status;
}

void CallStop::End(const absl::Status& cause) {
  if (cause_.ok()) cause_ = cause;
  cancel_.Cancel();
}

}  // namespace softlookup::server
