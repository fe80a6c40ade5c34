#ifndef SOFTLOOKUP_CLIENT_TOOL_INTERRUPT_H_
#define SOFTLOOKUP_CLIENT_TOOL_INTERRUPT_H_

#include <signal.h>

#include <array>
#include <atomic>

#include "absl/status/status.h"

namespace softlookup::tool {

// While the object lives the first SIGINT or SIGTERM does not end the process: it is only noted, so
// that what the command made can be cleaned up on the way out. The one after it ends it at once.
// One object at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Set once a signal came.
  const std::atomic<bool>& interrupted() const;

  // Forgets a signal that came, so that one more is noted before one ends the process.
  void Rearm();

  // Cancelled once a signal came.
  absl::Status Check() const;

 private:
  static constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};

  std::array<struct sigaction, kSignals.size()> before_;
};

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_INTERRUPT_H_
