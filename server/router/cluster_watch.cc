#include "server/router/cluster_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>

#include "absl/synchronization/notification.h"
#include "core/base/steady_time.h"
#include "server/base/host_port.h"

namespace softlookup::server {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr absl::Duration kDirectoryInterval = absl::Seconds(1);
// A replica tells once a second what it has applied. One that does not have what was committed this
// long ago is behind, or cannot tell.
constexpr absl::Duration kBehind = absl::Seconds(4);

}  // namespace

ClusterWatch::ClusterWatch(ClusterWatchOptions options)
    : options_(std::move(options)),
      etcd_(std::make_unique<EtcdClient>(
          options_.etcd,
          [this](absl::AnyInvocable<void()> task) { thread_.Post(std::move(task)); })),
      thread_([this] { Tick(); }, kTick) {}

ClusterWatch::~ClusterWatch() {
  absl::Notification closed;
  thread_.Post([&] {
    etcd_.reset();
    closed.Notify();
  });
  closed.WaitForNotification();
}

void ClusterWatch::WithEtcd(absl::AnyInvocable<void(Etcd&)> use) {
  thread_.Post([this, use = std::move(use)]() mutable {
    if (etcd_ != nullptr) use(*etcd_);
  });
}

void ClusterWatch::Tick() {
  if (etcd_ == nullptr) return;
  options_.on_tick();
  const std::string trouble = etcd_->trouble();
  has_etcd_ = trouble.empty();
  if (trouble.empty() == had_trouble_) {
    had_trouble_ = !trouble.empty();
    options_.on_trouble(trouble);
  }
  if (is_reading_) return;
  const bool lacks_primary = std::ranges::any_of(
      map()->groups, [](const auto& group) { return group.primary == nullptr; });
  int wakes = wakes_;
  const bool is_woken = wakes > 0;
  if (!is_woken && !lacks_primary && SteadyNow() < next_read_) return;
  // Wake() may have set it anew.
  if (is_woken) wakes_.compare_exchange_strong(wakes, wakes - 1);
  is_reading_ = true;
  next_read_ = SteadyNow() + kDirectoryInterval;
  ReadClusterDirectory(*etcd_, options_.cluster,
                       [this](const absl::StatusOr<ClusterDirectory>& directory) {
                         is_reading_ = false;
                         if (!directory.ok()) return;
                         Apply(*directory);
                         if (SteadyNow() < next_second_) return;
                         next_second_ = SteadyNow() + kDirectoryInterval;
                         options_.on_second();
                       });
}

void ClusterWatch::Apply(const ClusterDirectory& directory) {
  auto map = std::make_shared<ClusterMap>();
  for (const ClusterDirectory::Group& told : directory.groups) {
    map->groups.push_back(GroupOf(told));
  }
  {
    absl::MutexLock lock(&mutex_);
    map_ = std::move(map);
  }
  ++read_count_;
  // What neither a map nor a call refers to is let go.
  std::erase_if(nodes_, [](const std::shared_ptr<Node>& node) { return node.use_count() == 1; });
}

ClusterMap::Group ClusterWatch::GroupOf(const ClusterDirectory::Group& told) {
  const std::uint64_t needed = NeededEntry(told);
  ClusterMap::Group group{.name = told.name};
  for (const ClusterDirectory::Node& replica : told.replicas) {
    if (!MayCall(replica)) continue;
    std::shared_ptr<Node> node = NodeAt(replica.name, replica.address);
    if (replica.name == told.primary) group.primary = node;
    group.replicas.push_back(
        {.node = std::move(node),
         .is_current = replica.applied_entry >= needed || replica.name == told.primary});
  }
  return group;
}

bool ClusterWatch::MayCall(const ClusterDirectory::Node& node) {
  const std::optional<HostPort> address = SplitHostPort(node.address);
  if (!address.has_value()) return false;
  if (!options_.calls_only_loopback || IsLoopback(address->host)) return true;
  if (warned_of_.insert(node.name).second) {
    spdlog::warn(
        "does not call node {} at {}, on another machine: that takes --cluster-ca with "
        "--cluster-certificate and --cluster-key; or say --insecure if everybody on that network "
        "may do everything",
        node.name, node.address);
  }
  return false;
}

std::uint64_t ClusterWatch::NeededEntry(const ClusterDirectory::Group& told) {
  auto& entries = last_entries_[told.name];
  const absl::Time now = SteadyNow();
  entries.emplace_back(now, told.last_entry);
  // The first one is kept that is older than kBehind.
  while (entries.size() > 1 && entries[1].first <= now - kBehind) entries.pop_front();
  return entries.front().first <= now - kBehind ? entries.front().second : 0;
}

std::shared_ptr<Node> ClusterWatch::NodeAt(const std::string& name, const std::string& address) {
  for (const std::shared_ptr<Node>& node : nodes_) {
    if (node->name() == name && node->address() == address) return node;
  }
  return nodes_.emplace_back(std::make_shared<Node>(name, address, options_.node_credentials));
}

}  // namespace softlookup::server
