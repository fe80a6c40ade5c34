#ifndef SOFTLOOKUP_CLIENT_TOOL_INTERRUPT_H_
#define SOFTLOOKUP_CLIENT_TOOL_INTERRUPT_H_

#include <signal.h>

#include <array>
#include <atomic>

namespace softlookup::tool {

// While the object lives, the first SIGINT or SIGTERM does not end the process. It only sets a
// flag, so that the command can clean up before it ends. A second signal of either kind ends the
// process at once. Only one object may exist at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // True once a signal has come.
  const std::atomic<bool>& interrupted() const;

  // Clears the flag. The next signal sets it again instead of ending the process.
  void Rearm();

 private:
  static constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};

  std::array<struct sigaction, kSignals.size()> before_;
};

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_INTERRUPT_H_
