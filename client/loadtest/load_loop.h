#ifndef SOFTLOOKUP_CLIENT_LOADTEST_LOAD_LOOP_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_LOAD_LOOP_H_

#include "client/loadtest/load_options.h"

namespace softlookup::loadtest {

// How often a waiting thread checks whether it must stop.
inline constexpr std::chrono::milliseconds kLookInterval(20);

// Makes the calls of a run.
class LoadLoop {
 public:
  virtual ~LoadLoop() = default;

  // Makes calls from `begin` until `end`, or until CallSetup::stop is set. Returns once all calls
  // have ended. Must be called once only.
  virtual void Run(Clock::time_point begin, Clock::time_point end) = 0;

  // Makes Run() give up the calls in flight. CallSetup::stop must be set, so that no further call
  // begins. Any thread may call this.
  virtual void CancelCalls() = 0;

  // Returns the fraction of one core that the busiest sender used, in [0, 1]. 0 in a closed loop,
  // which has no senders. Must be called after Run().
  virtual double sender_use() const = 0;
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_LOAD_LOOP_H_
