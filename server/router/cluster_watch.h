#ifndef SOFTLOOKUP_SERVER_ROUTER_CLUSTER_WATCH_H_
#define SOFTLOOKUP_SERVER_ROUTER_CLUSTER_WATCH_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/cluster/etcd_client.h"
#include "server/cluster/task_thread.h"
#include "server/router/cluster_map.h"
#include "softlookup/cluster_directory.h"

namespace softlookup::server {

struct ClusterWatchOptions {
  EtcdOptions etcd;
  std::string cluster;
  std::shared_ptr<grpc::ChannelCredentials> node_credentials;
  // Nodes on other machines are not called: they could not be told from others.
  bool calls_only_loopback = false;
  // Called on the watch's thread when etcd has told a whole directory, but at most once a second.
  std::function<void()> on_second = [] {};
  // Called on the watch's thread about ten times a second.
  std::function<void()> on_tick = [] {};
  // Called on the watch's thread when etcd has not answered for some seconds, with what is wrong,
  // and with "" once it answers again.
  std::function<void(const std::string&)> on_trouble = [](const std::string&) {};
};

// Keeps a map of a cluster's groups as etcd tells them, and a connection to each node. Reads etcd
// each second, and ten times a second while a group has no primary or soon after Wake(). While etcd
// does not answer, the map stays as it was. Thread-safe.
class ClusterWatch {
 public:
  explicit ClusterWatch(ClusterWatchOptions options);
  // No call of a node may be in progress.
  ~ClusterWatch();
  ClusterWatch(const ClusterWatch&) = delete;
  ClusterWatch& operator=(const ClusterWatch&) = delete;

  // Never null. Without groups until etcd has answered.
  std::shared_ptr<const ClusterMap> map() const {
    absl::MutexLock lock(&mutex_);
    return map_;
  }
  // Returns how often etcd has told the map.
  std::uint64_t read_count() const { return read_count_; }
  // Whether etcd has answered within some seconds.
  bool has_etcd() const { return has_etcd_; }
  // The map may be old: etcd is read soon.
  void Wake() { wakes_ = kWakeReads; }

  // Calls `use` with the client of etcd, on its thread. Not called if this is being destroyed.
  void WithEtcd(absl::AnyInvocable<void(Etcd&)> use);

 private:
  // Of how many reads in a row Wake() makes.
  static constexpr int kWakeReads = 20;

  void Tick();
  void Apply(const ClusterDirectory& directory);
  ClusterMap::Group GroupOf(const ClusterDirectory::Group& told);
  bool MayCall(const ClusterDirectory::Node& node);
  // Returns the node, which is connected to if it is new.
  std::shared_ptr<Node> NodeAt(const std::string& name, const std::string& address);
  // Returns the last entry that a replica must have applied to be current.
  std::uint64_t NeededEntry(const ClusterDirectory::Group& told);

  const ClusterWatchOptions options_;
  std::atomic<bool> has_etcd_{true};
  std::atomic<int> wakes_{0};
  std::atomic<std::uint64_t> read_count_{0};

  // The next are used on the thread only.
  std::unique_ptr<EtcdClient> etcd_;  // Null once this is being destroyed.
  bool is_reading_ = false;
  absl::Time next_read_ = absl::InfinitePast();
  absl::Time next_second_ = absl::InfinitePast();
  bool had_trouble_ = false;
  // All nodes that a map or a call may refer to, so that the last reference goes on this thread.
  std::vector<std::shared_ptr<Node>> nodes_;
  std::set<std::string> warned_of_;  // Nodes that are not called.
  // For each group, the last entries that were committed at earlier reads, with the times.
  std::map<std::string, std::deque<std::pair<absl::Time, std::uint64_t>>> last_entries_;

  mutable absl::Mutex mutex_;
  std::shared_ptr<const ClusterMap> map_ ABSL_GUARDED_BY(mutex_) = std::make_shared<ClusterMap>();

  TaskThread thread_;  // Declared last, because it uses the other members.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_CLUSTER_WATCH_H_
