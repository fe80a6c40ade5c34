#ifndef SOFTLOOKUP_SERVER_ROUTER_PRIMARY_WAIT_H_
#define SOFTLOOKUP_SERVER_ROUTER_PRIMARY_WAIT_H_

#include <grpcpp/alarm.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/router/routed_call.h"

namespace softlookup::server {

// Finds the primary of a store's group, and waits while there is none. Thread-safe.
class PrimaryWait : public std::enable_shared_from_this<PrimaryWait> {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<std::shared_ptr<Node>>)>;

  // Calls `done` once, on any thread, perhaps before this returns: with a node that is connected,
  // or with CLUSTER_UNAVAILABLE after RoutedCall::kTryMax or at `deadline`.
  static std::shared_ptr<PrimaryWait> Start(const RouterParts& parts, const std::string& store,
                                            absl::Time deadline, Done done);
  // Calls `done` with `status`, an error, unless it was called.
  void End(const absl::Status& status) { Finish(status); }

 private:
  PrimaryWait(const RouterParts& parts, absl::Time deadline, Done done);

  void Look();
  void Finish(absl::StatusOr<std::shared_ptr<Node>> found);

  const RouterParts parts_;
  const CallSet::Life life_{parts_.calls};
  const absl::Time give_up_;  // By the steady clock.

  absl::Mutex mutex_;
  std::string group_ ABSL_GUARDED_BY(mutex_);
  Done done_ ABSL_GUARDED_BY(mutex_);  // Null once it was called.
  std::optional<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_PRIMARY_WAIT_H_
