#include "core/attention/pass_task.h"

#include "core/base/error.h"

namespace softlookup {

bool PassTask::Continues() {
  if (cancelled_.load(std::memory_order_relaxed)) return false;
  if (cancel_.Check().ok()) return true;
  cancelled_.store(true, std::memory_order_relaxed);
  return false;
}

absl::Status PassTask::status() const {
  if (!cancelled_) return absl::OkStatus();
  const absl::Status status = cancel_.Check();
  // If the clock was set back after the deadline had passed, Check() returns OK again.
  return status.ok() ? MakeError(reasons::kDeadlineExceeded, "The deadline has passed") : status;
}

}  // namespace softlookup
