#include "server/rpc/alarm.h"

#include <memory>
#include <utility>

#include "server/base/event_order.h"

namespace softlookup::server {

void SetAlarm(grpc::Alarm& alarm, absl::Time time, std::function<void(bool is_time)> on_end) {
  // Passes gRPC a pointer instead of `on_end` itself. gRPC would copy `on_end`, and ThreadSanitizer
  // does not see how gRPC orders its copies.
  auto* kept = new std::function<void(bool)>(std::move(on_end));
  BeforeEvent(kept);
  alarm.Set(absl::ToChronoTime(time), [kept](bool is_time) {
    InEvent(kept);
    const std::unique_ptr<std::function<void(bool)>> owned(kept);
    (*owned)(is_time);
  });
}

}  // namespace softlookup::server
