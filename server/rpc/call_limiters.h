#ifndef SOFTLOOKUP_SERVER_RPC_CALL_LIMITERS_H_
#define SOFTLOOKUP_SERVER_RPC_CALL_LIMITERS_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "core/base/limits.h"
#include "server/base/single_task.h"
#include "server/limits/connection_calls.h"
#include "server/limits/stall_watch.h"
#include "server/limits/tenant_limits.h"
#include "server/limits/token_buckets.h"
#include "server/limits/unsent_answers.h"
#include "server/limits/workers.h"
#include "server/rpc/message_receiver.h"
#include "server/rpc/store_limits.h"

namespace softlookup::server {

// The limits on all calls of a server.
struct CallLimits {
  Limits engine;
  // Longest wait until a client takes a message. It is longer for a large unary answer
  // (StallWatch).
  absl::Duration stall_timeout = absl::InfiniteDuration();
  // Longest wait for a call's first message.
  absl::Duration receive_timeout = absl::InfiniteDuration();
  // A lookup waits no longer than this for its revision, whatever its deadline.
  absl::Duration revision_wait_max = absl::InfiniteDuration();
  Rates tenant_rates;
  std::size_t calls_per_connection_max = 1024;  // Calls in progress.
  // Maximum bytes of all requests in flight. At least 1, because RequestBytes takes 0 for no limit.
  std::int64_t request_bytes_max = std::int64_t{1} << 30;
};

// What holds the calls of a server to their limits. All calls share it. Thread-safe. Code that
// needs only one limiter should get a reference to that limiter instead of this struct.
struct CallLimiters {
  explicit CallLimiters(const CallLimits& limits);
  CallLimiters(const CallLimiters&) = delete;
  CallLimiters& operator=(const CallLimiters&) = delete;

  const CallLimits limits;
  ConnectionCalls connections;
  TenantLimits tenants;
  const MessageReceiver messages;  // Has the budget of the bytes of all requests.
  StallWatch arrivals;             // Ends calls whose first message does not come.
  StallWatch stalls;               // Ends calls whose clients take no message.
  UnsentAnswers unsent_answers;
  StoreCreations store_creations;
  SingleTask compaction;  // Runs the work of a CompactStore call.
  SingleTask restore;     // Runs the work of a RestoreStore call.
  // Declared last, so that it is destroyed first. Its destructor runs the waiting tasks, and these
  // may use the other members.
  Workers workers;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_CALL_LIMITERS_H_
