#include "server/router/primary_wait.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "core/base/steady_time.h"
#include "server/rpc/alarm.h"

namespace softlookup::server {

PrimaryWait::PrimaryWait(const RouterParts& parts, absl::Time deadline, Done done)
    : parts_(parts),
      give_up_(SteadyNow() + std::min(RoutedCall::kTryMax, deadline - absl::Now())),
      done_(std::move(done)) {}

std::shared_ptr<PrimaryWait> PrimaryWait::Start(const RouterParts& parts, const std::string& store,
                                                absl::Time deadline, Done done) {
  std::shared_ptr<PrimaryWait> wait(new PrimaryWait(parts, deadline, std::move(done)));
  parts.tenants.FindGroup(store, [wait](const absl::StatusOr<std::string>& group) {
    if (!group.ok()) return wait->Finish(group.status());
    {
      absl::MutexLock lock(&wait->mutex_);
      wait->group_ = *group;
    }
    wait->Look();
  });
  return wait;
}

void PrimaryWait::Look() {
  const std::shared_ptr<const ClusterMap> map = parts_.watch.map();
  std::shared_ptr<Node> primary;
  {
    absl::MutexLock lock(&mutex_);
    if (done_ == nullptr) return;
    const ClusterMap::Group* const group = map->Find(group_);
    if (group != nullptr) primary = group->primary;
    const bool is_found = primary != nullptr && primary->is_connected();
    const bool gives_up = SteadyNow() + RoutedCall::kLookAgain >= give_up_;
    if (!is_found && !gives_up) {
      parts_.watch.Wake();
      return SetAlarm(alarm_.emplace(), absl::Now() + RoutedCall::kLookAgain,
                      [wait = shared_from_this()](bool is_time) {
                        if (is_time) wait->Look();
                      });
    }
    if (!is_found) primary = nullptr;
  }
  if (primary != nullptr) return Finish(std::move(primary));
  Finish(ClusterUnavailable("The store's group has no primary now"));
}

void PrimaryWait::Finish(absl::StatusOr<std::shared_ptr<Node>> found) {
  Done done;
  {
    absl::MutexLock lock(&mutex_);
    if (done_ == nullptr) return;
    done = std::exchange(done_, nullptr);
    alarm_.reset();
  }
  done(std::move(found));
}

}  // namespace softlookup::server
