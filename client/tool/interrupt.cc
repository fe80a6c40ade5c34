#include "client/tool/interrupt.h"

#include <errno.h>
#include <semaphore.h>

#include <cstddef>
#include <utility>

namespace softlookup::tool {
namespace {

std::atomic<bool> signalled;
static_assert(std::atomic<bool>::is_always_lock_free, "It is written by a signal handler");

// The semaphore that an InterruptAction's thread waits on. A signal handler may post a semaphore.
// The semaphore lives as long as the process, because a signal handler may still run after its
// InterruptGuard is destroyed.
sem_t* Wakings() {
  static sem_t semaphore;
  static const bool initialised = sem_init(&semaphore, /*pshared=*/0, 0) == 0;
  return initialised ? &semaphore : nullptr;
}

// At the first signal of either kind, sets the flag and wakes an InterruptAction. A second signal
// ends the process as if it had no handler.
void OnSignal(int number) {
  const int error = errno;
  if (!signalled.exchange(true)) {
    sem_post(Wakings());
  } else {
    signal(number, SIG_DFL);
    raise(number);  // Takes effect when the handler returns.
  }
  errno = error;
}

}  // namespace

InterruptGuard::InterruptGuard(Reads reads) : reads_(reads) {
  Wakings();  // Makes the semaphore, because a signal handler must not.
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &before_[i]);
  Rearm();
}

void InterruptGuard::Rearm() {
  signalled = false;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = reads_ == Reads::kGoOn ? SA_RESTART : 0;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    // If the process ignored a signal before, for example under nohup, it still does.
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

const std::atomic<bool>& InterruptGuard::interrupted() const { return signalled; }

InterruptAction::InterruptAction(std::function<void()> action)
    : action_(std::move(action)), thread_([this] {
        // The semaphore may still hold a post for an earlier InterruptAction. So a return of
        // sem_wait() proves nothing, and only the flags count.
        while (!signalled && !ended_) sem_wait(Wakings());
        if (!ended_) action_();
      }) {}

InterruptAction::~InterruptAction() {
  ended_ = true;
  sem_post(Wakings());
  thread_.join();
}

}  // namespace softlookup::tool
