#ifndef SOFTLOOKUP_SERVER_RPC_ALARM_H_
#define SOFTLOOKUP_SERVER_RPC_ALARM_H_

#include <grpcpp/alarm.h>

#include <functional>

#include "absl/time/time.h"

namespace softlookup::server {

// Sets `alarm`, so that gRPC calls `on_end` once: with true at `time`, or with false if `alarm` is
// cancelled or destroyed first. `on_end` runs on one of gRPC's threads, never within SetAlarm(),
// and lives until it has returned.
void SetAlarm(grpc::Alarm& alarm, absl::Time time, std::function<void(bool is_time)> on_end);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_ALARM_H_
