#ifndef SOFTLOOKUP_SERVER_ROUTER_ROUTED_CALL_H_
#define SOFTLOOKUP_SERVER_ROUTER_ROUTED_CALL_H_

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/cluster/call_set.h"
#include "server/cluster/shared_limit.h"
#include "server/router/cluster_map.h"
#include "server/router/cluster_watch.h"
#include "server/router/limited_identities.h"
#include "server/router/node_call.h"
#include "server/router/ranged_stores.h"
#include "server/router/route.h"
#include "server/router/seen_revisions.h"
#include "server/router/silence_watch.h"
#include "server/router/tenant_table.h"

namespace softlookup::server {

// What the calls of a router share.
struct RouterParts {
  std::shared_ptr<CallSet> calls;
  ClusterWatch& watch;
  TenantTable& tenants;
  SeenRevisions& revisions;
  RangedStores& ranged_stores;
  LimitedIdentities& limited_identities;
  SilenceWatch& silence;
  SharedLimit& part_bytes;             // Of what ranges have answered to lookups in progress.
  std::int64_t message_bytes_max = 0;  // Of an answer that the router makes.
};

// One request on its way to a node and back, tried again where that is safe. Ends with the first
// answer, or with the last error. Thread-safe.
class RoutedCall : public Route, public std::enable_shared_from_this<RoutedCall> {
 public:
  // For how long a call is tried again, and waits for a node or for a primary.
  static constexpr absl::Duration kTryMax = absl::Seconds(10);
  // When a call that finds no node looks again.
  static constexpr absl::Duration kLookAgain = absl::Milliseconds(50);

  RoutedCall(const RoutedCall&) = delete;
  RoutedCall& operator=(const RoutedCall&) = delete;

  // Finds the group of the store, and sends the request there. Call this or StartIn() once, first.
  void Start() override;
  // Sends the request to the group of this name.
  void StartIn(const std::string& group);
  void Cancel() override;
  // Call this SilenceWatch::kTime after Watch().
  void OnTime();

 protected:
  using Group = ClusterMap::Group;

  // `store` is what the request is about; empty: nothing in particular.
  RoutedCall(const RouterParts& parts, RoutedRequest request, std::string store, Done done);

  // The next are called one at a time, and must call Send(), LookAgain() or Finish() unless another
  // answer is still to come. `group` is the store's as it is now.
  //
  // Sends the request to a node.
  virtual void Try(const Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // A node has answered with `status`, an error, or was not reached.
  virtual void OnError(const std::shared_ptr<Node>& node, const grpc::Status& status,
                       const Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // A call of Watch() was some time ago. What is to be done may be nothing.
  virtual void OnWaited(const Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {}
  // A node has answered. The answer is passed on afterwards.
  virtual void OnAnswer(grpc::ByteBuffer& response) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {}

  // Sends `bytes`; `revision_wait` is as NodeCall::Start() says.
  void Send(const std::shared_ptr<Node>& node, const grpc::ByteBuffer& bytes,
            std::optional<absl::Duration> revision_wait = std::nullopt)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls Try() after kLookAgain, or Finish() with `why` if that would be beyond kTryMax or the
  // call's deadline.
  void LookAgain(absl::Status why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Lets OnWaited() be called after SilenceWatch::kTime, unless the call is over.
  void Watch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { parts_.silence.Add(weak_from_this()); }
  void Finish(absl::Status status, const grpc::ByteBuffer& response = {})
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The store is in the group of this name from now on.
  void MoveTo(std::string group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    group_ = std::move(group);
  }
  // Whether another answer is still to come.
  bool is_waiting() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !running_.empty(); }

  RoutedRequest& request() { return request_; }
  const std::string& store() const { return store_; }
  const RouterParts& parts() const { return parts_; }

  absl::Mutex mutex_;

 private:
  struct Ending {
    absl::Status status;
    grpc::ByteBuffer response;
  };

  // Calls `step` unless the call is over, then done_ if that has called Finish().
  template <typename Step>
  void Run(Step step);
  // Runs `step` with the group as it is now.
  template <typename Step>
  void RunInGroup(Step step);
  void OnDone(const std::shared_ptr<Node>& node, const grpc::Status& status,
              grpc::ByteBuffer& response);

  const RouterParts parts_;
  const CallSet::Life life_{parts_.calls};
  RoutedRequest request_;
  const std::string store_;

  // Set before the first Try().
  std::string group_ ABSL_GUARDED_BY(mutex_);
  absl::Time give_up_ ABSL_GUARDED_BY(mutex_);  // By the steady clock.
  Done done_ ABSL_GUARDED_BY(mutex_);           // Null once the call is over.
  std::optional<Ending> ending_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<NodeCall>> running_ ABSL_GUARDED_BY(mutex_);
  std::optional<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_ROUTED_CALL_H_
