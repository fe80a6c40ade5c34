#include "server/router/silence_watch.h"

#include <vector>

#include "core/base/steady_time.h"
#include "server/router/routed_call.h"

namespace softlookup::server {

void SilenceWatch::Add(std::weak_ptr<RoutedCall> call) {
  const absl::Time time = SteadyNow() + kTime;
  absl::MutexLock lock(&mutex_);
  calls_.emplace_back(time, std::move(call));
}

void SilenceWatch::Tick() {
  const absl::Time now = SteadyNow();
  std::vector<std::shared_ptr<RoutedCall>> waiting;
  {
    absl::MutexLock lock(&mutex_);
    while (!calls_.empty() && calls_.front().first <= now) {
      if (auto call = calls_.front().second.lock()) waiting.push_back(std::move(call));
      calls_.pop_front();
    }
  }
  for (const auto& call : waiting) call->OnTime();
}

}  // namespace softlookup::server
