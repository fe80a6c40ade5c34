#ifndef SOFTLOOKUP_CLIENT_TOOL_INTERRUPT_H_
#define SOFTLOOKUP_CLIENT_TOOL_INTERRUPT_H_

#include <signal.h>

#include <array>
#include <atomic>
#include <functional>
#include <thread>

namespace softlookup::tool {

// While the object lives, the first SIGINT or SIGTERM does not end the process. It only sets a
// flag, so that the command can clean up before it ends. A second signal of either kind ends the
// process at once. A signal that the process ignored before stays ignored. Only one object may
// exist at a time.
class InterruptGuard {
 public:
  // What a signal does to a read that waits for input on the main thread. kGoOn: the read goes on
  // waiting. kFail: the read fails with EINTR.
  enum class Reads { kGoOn, kFail };

  explicit InterruptGuard(Reads reads = Reads::kGoOn);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // True once a signal has come.
  const std::atomic<bool>& interrupted() const;

  // Clears the flag. The next signal then sets the flag again, and does not end the process.
  void Rearm();

 private:
  static constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};

  const Reads reads_;
  std::array<struct sigaction, kSignals.size()> before_;
};

// Runs `action` once, on a thread of its own, as soon as a signal comes to the InterruptGuard. If a
// signal came before this object was made, runs `action` at once. An InterruptGuard must live as
// long as this object. Only one InterruptAction may exist at a time.
class InterruptAction {
 public:
  explicit InterruptAction(std::function<void()> action);
  // Waits for `action` if it is running. If it has not begun, it never runs.
  ~InterruptAction();
  InterruptAction(const InterruptAction&) = delete;
  InterruptAction& operator=(const InterruptAction&) = delete;

 private:
  const std::function<void()> action_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_INTERRUPT_H_
