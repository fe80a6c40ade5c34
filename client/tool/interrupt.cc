#include "client/tool/interrupt.h"

#include <cstddef>

namespace softlookup::tool {
namespace {

std::atomic<bool> signalled;
static_assert(std::atomic<bool>::is_always_lock_free, "It is written by a signal handler");

// The first signal of either kind is noted. One more ends the process as if nothing handled it.
void OnSignal(int number) {
  if (!signalled.exchange(true)) return;
  signal(number, SIG_DFL);
  raise(number);  // Takes effect when the handler returns.
}

}  // namespace

InterruptGuard::InterruptGuard() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &before_[i]);
  Rearm();
}

void InterruptGuard::Rearm() {
  signalled = false;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    // A signal that the process ignores, as under nohup, stays ignored.
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

const std::atomic<bool>& InterruptGuard::interrupted() const { return signalled; }

}  // namespace softlookup::tool
