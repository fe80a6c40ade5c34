#include "server/stall_watch.h"

#include <grpc/grpc.h>

#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace softlookup::server {
namespace {

std::int64_t SteadyNanoseconds() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

StallWatch::Writes::Writes(StallWatch& watch, grpc::CallbackServerContext& context)
    : watch_(watch), call_(context.c_call()) {
  if (watch_.timeout_ == absl::InfiniteDuration()) return;
  absl::MutexLock lock(&watch_.mutex_);
  watch_.writes_.insert(this);
}

void StallWatch::Writes::OnStart(std::size_t bytes) {
  if (watch_.timeout_ == absl::InfiniteDuration()) return;
  const std::int64_t more = static_cast<std::int64_t>(bytes >> 20);
  since_.store(SteadyNanoseconds() + more * absl::ToInt64Nanoseconds(watch_.timeout_),
               std::memory_order_relaxed);
}

void StallWatch::Writes::End() {
  if (watch_.timeout_ == absl::InfiniteDuration()) return;
  absl::MutexLock lock(&watch_.mutex_);
  watch_.writes_.erase(this);
}

StallWatch::StallWatch(absl::Duration timeout) : timeout_(timeout) {
  if (timeout_ < absl::InfiniteDuration()) thread_ = std::thread([this] { Run(); });
}

StallWatch::~StallWatch() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void StallWatch::Run() {
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), timeout_ / 4)) return;
    }
    EndStalled();
  }
}

void StallWatch::EndStalled() {
  std::vector<grpc_call*> stalled;
  {
    absl::MutexLock lock(&mutex_);
    const std::int64_t before = SteadyNanoseconds() - absl::ToInt64Nanoseconds(timeout_);
    for (Writes* writes : writes_) {
      const std::int64_t since = writes->since_.load(std::memory_order_relaxed);
      if (since == 0 || since > before) continue;
      writes->OnDone();
      grpc_call_ref(writes->call_);
      stalled.push_back(writes->call_);
    }
  }
  // Not under the lock: the call's own callbacks may run here, and end it.
  const std::string message = absl::StrCat(
      "STREAM_STALLED: the client has not taken a message for ", absl::FormatDuration(timeout_));
  for (grpc_call* call : stalled) {
    // Goes to the client ahead of what it has not taken, without details.
    grpc_call_cancel_with_status(call, GRPC_STATUS_RESOURCE_EXHAUSTED, message.c_str(), nullptr);
    grpc_call_unref(call);
  }
}

}  // namespace softlookup::server
