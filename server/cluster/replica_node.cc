#include "server/cluster/replica_node.h"

#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace softlookup::server {
namespace {

constexpr absl::Duration kTickInterval = absl::Milliseconds(100);

}  // namespace

ReplicaNode::ReplicaNode(EtcdOptions etcd, PeerOptions peers,
                         std::function<void(const std::string&)> on_trouble)
    : on_trouble_(std::move(on_trouble)),
      etcd_(std::make_unique<EtcdClient>(
          std::move(etcd),
          [this](absl::AnyInvocable<void()> task) { thread_.Post(std::move(task)); })),
      peers_(std::make_unique<GrpcPeers>(
          std::move(peers),
          [this](absl::AnyInvocable<void()> task) { thread_.Post(std::move(task)); })),
      thread_([this] { Tick(); }, kTickInterval) {}

ReplicaNode::~ReplicaNode() {
  absl::Notification closed;
  thread_.Post([&] {
    Close();
    closed.Notify();
  });
  closed.WaitForNotification();
}

void ReplicaNode::Watch(std::string begin, std::string end, OnEtcdChange on_change) {
  etcd_->Watch(std::move(begin), std::move(end), std::move(on_change));
}

void ReplicaNode::Close() {
  tick_ = nullptr;
  peers_ = nullptr;
  etcd_ = nullptr;
}

void ReplicaNode::Tick() {
  if (etcd_ == nullptr) return;
  etcd_->Tick();
  if (tick_ != nullptr) tick_();
  const std::string trouble = etcd_->trouble();
  if (trouble.empty() != has_trouble_) return;
  has_trouble_ = !has_trouble_;
  on_trouble_(trouble);
}

}  // namespace softlookup::server
