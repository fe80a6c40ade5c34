#ifndef SOFTLOOKUP_SERVER_RPC_ALARM_H_
#define SOFTLOOKUP_SERVER_RPC_ALARM_H_

#include <grpcpp/alarm.h>

#include <functional>

#include "absl/time/time.h"

namespace softlookup::server {

// Has gRPC call `on_end` once: with true at `time`, or with false if the alarm is cancelled or
// destroyed first. The call is on a thread of gRPC's, never within SetAlarm(). Keeps `on_end` until
// then.
void SetAlarm(grpc::Alarm& alarm, absl::Time time, std::function<void(bool is_time)> on_end);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_ALARM_H_
