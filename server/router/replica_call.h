#ifndef SOFTLOOKUP_SERVER_ROUTER_REPLICA_CALL_H_
#define SOFTLOOKUP_SERVER_ROUTER_REPLICA_CALL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "server/router/routed_call.h"

namespace softlookup::server {

// A request that any replica of a group can answer: a Lookup, or a part of one, or an Attend. It
// goes to the replica with the fewest calls in progress. If that one fails, or is silent, it goes
// to another one. If the request is about a store, its answer has what the router has seen of the
// store. Such a request and its response have the fields of LookupRequest and LookupResponse below.
class ReplicaCall final : public RoutedCall {
 public:
  struct Choice {
    // Nodes of these names are asked before others, in this order, if they can be reached.
    std::vector<std::string> preferred;
    // Whether the call ends with the first error, without asking another node.
    bool only_once = false;
  };

  static std::shared_ptr<ReplicaCall> Make(const RouterParts& parts, RoutedRequest request,
                                           std::string store, Done done, Choice choice) {
    return std::shared_ptr<ReplicaCall>(new ReplicaCall(parts, std::move(request), std::move(store),
                                                        std::move(done), std::move(choice)));
  }

 private:
  // Field numbers of LookupRequest and LookupResponse.
  static constexpr int kMinRevisionField = 8;
  static constexpr int kRevisionField = 4;
  // How long a replica waits for a revision before the primary is asked instead. For that of a part
  // of a lookup, it waits for kPartRevisionWait.
  static constexpr absl::Duration kRevisionWait = absl::Milliseconds(250);
  // How long the primary waits for that of a part: for as long as its own limit lets it.
  static constexpr absl::Duration kPrimaryRevisionWait = absl::Hours(1);
  // How long lookups go elsewhere after a node has failed or was silent.
  static constexpr absl::Duration kAvoided = absl::Seconds(1);

  ReplicaCall(const RouterParts& parts, RoutedRequest request, std::string store, Done done,
              Choice choice)
      : RoutedCall(parts, std::move(request), std::move(store), std::move(done)),
        choice_(std::move(choice)) {}

  void Try(const Group& group) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnError(const std::shared_ptr<Node>& node, const grpc::Status& status,
               const Group& group) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnAnswer(grpc::ByteBuffer& response) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnWaited(const Group& group) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Returns the node to ask next. Null if there is none that was not asked, or is connected.
  std::shared_ptr<Node> Choose(const Group& group) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendTo(const std::shared_ptr<Node>& node, const Group& group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Lets OnWaited() come unless it is to come already.
  void WatchOnce() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether there is a primary, or will be one.
  bool MayHavePrimary(const Group& group) const;
  // Whether `node` has shown by `status` that it lacks what the router has seen, or what the client
  // has asked for.
  bool IsBehind(const std::shared_ptr<Node>& node, const absl::Status& status,
                const Group& group) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Choice choice_;
  std::vector<std::shared_ptr<Node>> asked_ ABSL_GUARDED_BY(mutex_);
  bool needs_primary_ ABSL_GUARDED_BY(mutex_) = false;  // No other node can answer.
  // The revision that the request was sent with last, if it is not the client's. Else 0.
  std::uint64_t needed_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_watched_ ABSL_GUARDED_BY(mutex_) = false;  // OnWaited() is to come.
  bool has_hedged_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time sent_ ABSL_GUARDED_BY(mutex_);  // By the steady clock.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_REPLICA_CALL_H_
