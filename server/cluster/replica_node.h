#ifndef SOFTLOOKUP_SERVER_CLUSTER_REPLICA_NODE_H_
#define SOFTLOOKUP_SERVER_CLUSTER_REPLICA_NODE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "server/cluster/etcd_client.h"
#include "server/cluster/grpc_peers.h"
#include "server/cluster/task_thread.h"
#include "softlookup/replication.h"

namespace softlookup::server {

// The thread of a replica, with its clients of etcd and of the other replicas. Calls a function
// when etcd has not answered or has taken no writes for some seconds, and when it does again.
class ReplicaNode final : public ReplicaThread {
 public:
  // `on_trouble` is called on the thread, with what is wrong, or with "" once nothing is any more.
  ReplicaNode(EtcdOptions etcd, PeerOptions peers,
              std::function<void(const std::string&)> on_trouble);
  // Closes, if that was not done before.
  ~ReplicaNode() override;

  // As ReplicaThread says.
  void Post(absl::AnyInvocable<void()> task) override { thread_.Post(std::move(task)); }
  Etcd& etcd() override { return *etcd_; }
  Peers& peers() override { return *peers_; }
  std::string etcd_trouble() const override { return etcd_->trouble(); }
  void SetTick(absl::AnyInvocable<void()> tick) override { tick_ = std::move(tick); }
  void Watch(std::string begin, std::string end, OnEtcdChange on_change) override;
  void Close() override;

 private:
  void Tick();

  const std::function<void(const std::string&)> on_trouble_;
  bool has_trouble_ = false;  // Whether on_trouble_() was told so last.
  absl::AnyInvocable<void()> tick_;
  // Null once closed.
  std::unique_ptr<EtcdClient> etcd_;
  std::unique_ptr<GrpcPeers> peers_;
  TaskThread thread_;  // Declared last, because it uses the other members.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_CLUSTER_REPLICA_NODE_H_
