#include "server/cluster/replica_node.h"

#include <utility>

#include "absl/time/time.h"

namespace softlookup::server {
namespace {

constexpr absl::Duration kTickInterval = absl::Milliseconds(100);

}  // namespace

ReplicaNode::ReplicaNode(EtcdOptions options, std::function<void(const std::string&)> on_trouble)
    : on_trouble_(std::move(on_trouble)),
      etcd_(std::make_unique<EtcdClient>(
          std::move(options),
          [this](absl::AnyInvocable<void()> task) { thread_.Post(std::move(task)); })),
      thread_([this] { Tick(); }, kTickInterval) {}

void ReplicaNode::Watch(std::string key, absl::AnyInvocable<void()> on_change) {
  etcd_->Watch(std::move(key), std::move(on_change));
}

void ReplicaNode::Close() {
  tick_ = nullptr;
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
