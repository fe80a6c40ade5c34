#ifndef SOFTLOOKUP_SERVER_RPC_ALARM_H_
#define SOFTLOOKUP_SERVER_RPC_ALARM_H_

#include <grpcpp/alarm.h>

#include <functional>

#include "absl/time/time.h"

namespace softlookup::server {

// Calls `on_end` once, on a thread of gRPC's and never within SetAlarm(). Passes true at `time`, or
// false if the alarm is cancelled or destroyed first. `on_end` lives until then.
void SetAlarm(grpc::Alarm& alarm, absl::Time time, std::function<void(bool is_time)> on_end);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_ALARM_H_
