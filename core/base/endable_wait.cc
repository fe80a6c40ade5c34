#include "core/base/endable_wait.h"

#include <utility>

namespace softlookup {

void EndableWait::End(absl::Status status) {
  absl::AnyInvocable<void(absl::Status)> callback;
  {
    absl::MutexLock lock(&mutex_);
    if (end_.ok()) end_ = status;
    callback = std::exchange(callback_, nullptr);
  }
  if (callback) callback(std::move(status));
}

void EndableWait::OnEnd(absl::AnyInvocable<void(absl::Status)> callback) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    if (end_.ok()) {
      callback_ = std::move(callback);
      return;
    }
    status = end_;
  }
  callback(std::move(status));
}

}  // namespace softlookup
