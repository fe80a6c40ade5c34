#include "server/limits/stall_watch.h"

#include <grpc/grpc.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace softlookup::server {
namespace {

// Cancels `calls` and drops the reference to each. Call this without holding mutex_: handlers of
// the calls can run within this function, and their Waits::End() locks mutex_.
void EndCalls(const std::vector<grpc_call*>& calls, grpc_status_code code,
              const std::string& message) {
  for (grpc_call* call : calls) {
    // The status overtakes messages that the client has not taken. It has no error details, because
    // gRPC takes only a code and a message here.
    grpc_call_cancel_with_status(call, code, message.c_str(), nullptr);
    grpc_call_unref(call);
  }
}

}  // namespace

StallWatch::Waits::Waits(StallWatch& watch, grpc::ServerContextBase& context)
    : watch_(watch), call_(context.c_call()) {
  if (watch_.timeout_ == absl::InfiniteDuration()) return;
  absl::MutexLock lock(&watch_.mutex_);
  watch_.waits_.insert(this);
}

void StallWatch::Waits::OnStart(std::size_t bytes) {
  if (watch_.timeout_ == absl::InfiniteDuration()) return;
  const std::int64_t more = static_cast<std::int64_t>(bytes >> 20);
  since_.store(watch_.Now() + more * absl::ToInt64Nanoseconds(watch_.timeout_),
               std::memory_order_relaxed);
}

void StallWatch::Waits::End() {
  if (watch_.timeout_ == absl::InfiniteDuration()) return;
  absl::MutexLock lock(&watch_.mutex_);
  watch_.waits_.erase(this);
}

StallWatch::StallWatch(absl::Duration timeout, std::string what, const Clock& clock)
    : timeout_(timeout), what_(std::move(what)), clock_(clock) {
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
  const absl::Duration interval = timeout_ / 4;
  for (;;) {
    const absl::Time next_check = clock_.Now() + interval;
    {
      absl::MutexLock lock(&mutex_);
      clock_.AwaitUntil(mutex_, absl::Condition(&stopping_), next_check);
      if (stopping_) return;
    }
    const absl::Duration late = clock_.Now() - next_check;
    if (late >= interval) Forgive(late);
    EndStalled();
  }
}

void StallWatch::Forgive(absl::Duration time) {
  const std::int64_t now = Now();
  absl::MutexLock lock(&mutex_);
  for (Waits* waits : waits_) {
    std::int64_t since = waits->since_.load(std::memory_order_relaxed);
    if (since == Waits::kNoWait) continue;
    // A wait that began within the last `time` lost only a part of it, so its start moves to `now`
    // at most.
    std::int64_t forgiven = since + absl::ToInt64Nanoseconds(time);
    if (since <= now) forgiven = std::min(forgiven, now);
    // Changes nothing if the wait has ended meanwhile, or another has begun.
    waits->since_.compare_exchange_strong(since, forgiven, std::memory_order_relaxed);
  }
}

std::vector<grpc_call*> StallWatch::TakeWaiting(std::int64_t before) {
  std::vector<grpc_call*> calls;
  absl::MutexLock lock(&mutex_);
  for (Waits* waits : waits_) {
    std::int64_t since = waits->since_.load(std::memory_order_relaxed);
    // A failed exchange sets `since` to the start of the wait that has begun meanwhile, or to
    // kNoWait.
    while (since <= before && !waits->since_.compare_exchange_strong(since, Waits::kNoWait,
                                                                     std::memory_order_relaxed)) {
    }
    if (since > before) continue;
    grpc_call_ref(waits->call_);
    calls.push_back(waits->call_);
  }
  return calls;
}

void StallWatch::EndStalled() {
  const std::int64_t before = Now() - absl::ToInt64Nanoseconds(timeout_);
  const std::string message =
      absl::StrCat("STREAM_STALLED: ", what_, " for ", absl::FormatDuration(timeout_));
  EndCalls(TakeWaiting(before), GRPC_STATUS_RESOURCE_EXHAUSTED, message);
}

void StallWatch::EndAll(const std::string& why) {
  // Every wait in progress has a since_ below kNoWait.
  EndCalls(TakeWaiting(Waits::kNoWait - 1), GRPC_STATUS_UNAVAILABLE, why);
}

}  // namespace softlookup::server
