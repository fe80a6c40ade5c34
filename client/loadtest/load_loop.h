#ifndef SOFTLOOKUP_CLIENT_LOADTEST_LOAD_LOOP_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_LOAD_LOOP_H_

#include "client/loadtest/load_options.h"

namespace softlookup::loadtest {

// Makes the calls of a run.
class LoadLoop {
 public:
  virtual ~LoadLoop() = default;

  // Makes calls from `begin` until `end`, or until CallSetup::stop is set, and returns once all
  // have ended. Once.
  virtual void Run(Clock::time_point begin, Clock::time_point end) = 0;

  // Gives up the calls in flight, once CallSetup::stop is set and no call is begun any more.
  virtual void CancelCalls() = 0;

  // Part of one core that the busiest thread which sends has used, in [0, 1]; 0 where calls are
  // sent by those that end. After Run().
  virtual double sender_use() const = 0;
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_LOAD_LOOP_H_
