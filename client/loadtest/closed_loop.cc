#include "client/loadtest/closed_loop.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "client/loadtest/random.h"

namespace softlookup::loadtest {
namespace {

// Delay before the next call if the server cannot be reached. Without the delay, the loop would
// spin, because calls to such a server fail at once.
constexpr absl::Duration kUnreachableDelay = absl::Milliseconds(10);

// How often Run() checks whether all calls have ended.
constexpr std::chrono::milliseconds kDrainInterval(1);

}  // namespace

struct ClosedLoop::Caller final : public CallOwner {
  Caller(ClosedLoop* loop, int index, std::uint64_t seed)
      : loop(loop), random(seed + 0x51ed27 * (index + 1)), slot(loop->setup_, this, index) {}

  void Ended(CallSlot*, const grpc::Status& status) override {
    if (loop->Over()) {
      // Do this last: once `active_` is 0, Run() returns, and the loop may be destroyed.
      loop->active_.fetch_sub(1, std::memory_order_release);
      return;
    }
    const PreparedRequest& request = loop->traffic_->Draw(&random);
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE &&
        OutcomeOf(status) == Outcome::kFailed) {
      slot.StartAfter(kUnreachableDelay, request);
    } else {
      slot.Start(request, Clock::now());
    }
  }

  ClosedLoop* const loop;
  Random random;
  CallSlot slot;
};

ClosedLoop::ClosedLoop(const LoadOptions& options, const Traffic* traffic, CallSetup* setup)
    : ramp_(options.ramp), traffic_(traffic), setup_(setup) {
  for (int i = 0; i < options.concurrency; ++i) callers_.emplace_back(this, i, options.seed);
}

ClosedLoop::~ClosedLoop() = default;

bool ClosedLoop::Over() const {
  return setup_->stop.load(std::memory_order_relaxed) || Clock::now() >= end_;
}

void ClosedLoop::Run(Clock::time_point begin, Clock::time_point end) {
  end_ = end;
  const auto gap = absl::ToChronoNanoseconds(ramp_) / static_cast<int>(callers_.size());
  Clock::time_point start = begin;
  for (Caller& caller : callers_) {
    while (!Over() && Clock::now() < start) {
      std::this_thread::sleep_until(std::min(start, Clock::now() + kLookInterval));
    }
    if (Over()) break;
    active_.fetch_add(1, std::memory_order_relaxed);
    caller.slot.Start(traffic_->Draw(&caller.random), Clock::now());
    start += gap;
  }
  bool cancelled = false;
  while (active_.load(std::memory_order_acquire) > 0) {
    if (cancel_ && !cancelled) {
      for (Caller& caller : callers_) caller.slot.Cancel();
      cancelled = true;
    }
    std::this_thread::sleep_for(kDrainInterval);
  }
}

}  // namespace softlookup::loadtest
