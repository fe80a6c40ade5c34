#include "client/loadtest/open_loop.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>

#include "client/loadtest/arrival_schedule.h"
#include "client/loadtest/cpu_use.h"
#include "client/loadtest/random.h"

namespace softlookup::loadtest {
namespace {

// Makes the kernel wake the calling thread on time. By default, the kernel may wake a thread 50 us
// late, so this sets the slack to 1 ns. A thread also wakes late if other threads want its core, so
// this raises its priority if the process may do so.
void WakeOnTime() {
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  setpriority(PRIO_PROCESS, gettid(), -10);
}

void SleepUntil(Clock::time_point time) {
  const auto since_epoch = std::chrono::nanoseconds(time.time_since_epoch()).count();
  const timespec at = {.tv_sec = since_epoch / 1'000'000'000,
                       .tv_nsec = since_epoch % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
}

}  // namespace

// Sends one thread's part of the calls. A slot whose call has ended returns to the list
// `returned_`. Any thread may add a slot to this list. Only the sender's thread takes slots from
// the list, always all at once.
class OpenLoop::Sender final : public CallOwner {
 public:
  Sender(const LoadOptions& options, int part, const Traffic* traffic, CallSetup* setup,
         const std::atomic<bool>* cancel)
      : traffic_(traffic),
        setup_(setup),
        cancel_(cancel),
        first_index_(part),
        index_step_(options.senders),
        slots_max_(options.in_flight_max / options.senders),
        schedule_(options, part),
        random_(options.seed + 0x51ed27 * (part + 1)) {}

  void Run(Clock::time_point begin, Clock::time_point end) {
    WakeOnTime();
    const double cpu_before = ThreadCpuSeconds();
    for (;;) {
      const Clock::time_point due = begin + schedule_.Next();
      if (due >= end || !WaitUntil(due)) break;
      const PreparedRequest& request = traffic_->Draw(&random_);
      CallSlot* const slot = TakeSlot();
      if (slot == nullptr) {
        setup_->recorder->Overflowed(request.method, due);
        continue;
      }
      in_flight_.fetch_add(1, std::memory_order_relaxed);
      slot->Start(request, due);
    }
    const std::chrono::duration<double> wall = Clock::now() - begin;
    use_ = std::min(1.0, (ThreadCpuSeconds() - cpu_before) / std::max(1e-9, wall.count()));
    Drain();
  }

  void Ended(CallSlot* slot, const grpc::Status&) override {
    slot->next_free = returned_.load(std::memory_order_relaxed);
    while (!returned_.compare_exchange_weak(slot->next_free, slot, std::memory_order_release,
                                            std::memory_order_relaxed)) {
    }
    // Do this last: once `in_flight_` is 0, Drain() returns, and the sender may be destroyed.
    in_flight_.fetch_sub(1, std::memory_order_release);
  }

  double use() const { return use_; }

 private:
  // Waits until `due`. Returns false if no further call may be sent.
  bool WaitUntil(Clock::time_point due) const {
    for (;;) {
      if (setup_->stop.load(std::memory_order_relaxed)) return false;
      const Clock::time_point now = Clock::now();
      if (now >= due) return true;
      SleepUntil(std::min(due, now + kLookInterval));
    }
  }

  // Returns a free slot, or null if all are in use.
  CallSlot* TakeSlot() {
    if (free_ == nullptr) free_ = returned_.exchange(nullptr, std::memory_order_acquire);
    if (free_ != nullptr) {
      CallSlot* const slot = free_;
      free_ = slot->next_free;
      return slot;
    }
    if (static_cast<int>(slots_.size()) == slots_max_) return nullptr;
    const int index = first_index_ + index_step_ * static_cast<int>(slots_.size());
    return &slots_.emplace_back(setup_, this, index);
  }

  // Waits until all calls have ended. Cancels them once `*cancel_` is set.
  void Drain() {
    bool cancelled = false;
    while (in_flight_.load(std::memory_order_acquire) > 0) {
      if (*cancel_ && !cancelled) {
        for (CallSlot& slot : slots_) slot.Cancel();
        cancelled = true;
      }
      SleepUntil(Clock::now() + std::chrono::milliseconds(1));
    }
  }

  const Traffic* const traffic_;
  CallSetup* const setup_;
  const std::atomic<bool>* const cancel_;
  // The sender's i-th slot has the number first_index_ + i * index_step_ among all slots of the
  // run.
  const int first_index_;
  const int index_step_;
  const int slots_max_;
  ArrivalSchedule schedule_;
  Random random_;
  double use_ = 0;
  std::deque<CallSlot> slots_;
  CallSlot* free_ = nullptr;                   // Used by the sender's thread only.
  std::atomic<CallSlot*> returned_ = nullptr;  // Head of the list that any thread adds to.
  std::atomic<int> in_flight_ = 0;
};

OpenLoop::OpenLoop(const LoadOptions& options, const Traffic* traffic, CallSetup* setup) {
  for (int part = 0; part < options.senders; ++part) {
    senders_.push_back(std::make_unique<Sender>(options, part, traffic, setup, &cancel_));
  }
}

OpenLoop::~OpenLoop() = default;

void OpenLoop::Run(Clock::time_point begin, Clock::time_point end) {
  std::vector<std::thread> threads;
  for (const auto& sender : senders_) {
    threads.emplace_back([&sender, begin, end] { sender->Run(begin, end); });
  }
  for (std::thread& thread : threads) thread.join();
}

double OpenLoop::sender_use() const {
  double use = 0;
  for (const auto& sender : senders_) use = std::max(use, sender->use());
  return use;
}

}  // namespace softlookup::loadtest
