#ifndef SOFTLOOKUP_CLIENT_LOADTEST_OPEN_LOOP_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_OPEN_LOOP_H_

#include <atomic>
#include <memory>
#include <vector>

#include "client/loadtest/call_slot.h"
#include "client/loadtest/load_loop.h"
#include "client/loadtest/load_options.h"
#include "client/loadtest/traffic.h"

namespace softlookup::loadtest {

// Sends each call when it is due, even if earlier calls have not ended. The latency of a call
// counts from when it was due, so it includes every delay by the server, the network or this
// client.
class OpenLoop final : public LoadLoop {
 public:
  // `options.rate` must be set. `traffic` and `setup` must outlive the loop.
  OpenLoop(const LoadOptions& options, const Traffic* traffic, CallSetup* setup);
  ~OpenLoop() override;

  void Run(Clock::time_point begin, Clock::time_point end) override;
  void CancelCalls() override { cancel_ = true; }
  double sender_use() const override;

 private:
  class Sender;

  std::atomic<bool> cancel_ = false;
  std::vector<std::unique_ptr<Sender>> senders_;
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_OPEN_LOOP_H_
