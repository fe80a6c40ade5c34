#ifndef SOFTLOOKUP_CLIENT_LOADTEST_CLOSED_LOOP_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_CLOSED_LOOP_H_

#include <atomic>
#include <deque>

#include "client/loadtest/call_slot.h"
#include "client/loadtest/load_loop.h"
#include "client/loadtest/load_options.h"
#include "client/loadtest/traffic.h"

namespace softlookup::loadtest {

// After the ramp, keeps LoadOptions::concurrency calls in flight. When a call ends, the next one
// begins on the thread that brought the answer. It begins 10 ms later if the server cannot be
// reached. The latency of a call counts from when it was sent. While the server stalls, it gets no
// new calls, so the stall shows in few latencies. In an OpenLoop, the stall shows in all calls that
// were due meanwhile.
class ClosedLoop final : public LoadLoop {
 public:
  // `options.rate` must be unset. `traffic` and `setup` must outlive the loop.
  ClosedLoop(const LoadOptions& options, const Traffic* traffic, CallSetup* setup);
  ~ClosedLoop() override;

  void Run(Clock::time_point begin, Clock::time_point end) override;
  void CancelCalls() override { cancel_ = true; }
  double sender_use() const override { return 0; }

 private:
  struct Caller;  // Keeps one call in flight.

  // True if no further call may begin.
  bool Over() const;

  const absl::Duration ramp_;  // Over this time, the callers begin one after another.
  const Traffic* const traffic_;
  CallSetup* const setup_;
  Clock::time_point end_;
  std::atomic<bool> cancel_ = false;
  std::deque<Caller> callers_;
  std::atomic<int> active_ = 0;  // Callers that have a call in flight or wait to begin one.
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_CLOSED_LOOP_H_
