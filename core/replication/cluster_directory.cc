#include "softlookup/cluster_directory.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/replication/group_records.h"

namespace softlookup {
namespace {

// One ReadClusterDirectory(). Each callback keeps it alive.
class DirectoryRead : public std::enable_shared_from_this<DirectoryRead> {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<ClusterDirectory>)>;

  DirectoryRead(Etcd& etcd, std::string cluster, Done done)
      : etcd_(etcd), cluster_(std::move(cluster)), done_(std::move(done)) {}

  void ReadNodes() {
    const NodesRange range(cluster_);
    etcd_.List(range.begin, range.end,
               [self = shared_from_this(),
                prefix = range.begin.size()](absl::StatusOr<std::vector<EtcdKeyValue>> nodes) {
                 if (!nodes.ok()) return self->done_(nodes.status());
                 for (const EtcdKeyValue& node : *nodes) {
                   absl::StatusOr<NodeRecord> record = ParseNode(node.value);
                   if (!record.ok() || record->group.empty()) continue;
                   self->groups_.insert(record->group);
                   self->nodes_[node.key.substr(prefix)] = *std::move(record);
                 }
                 self->ReadNextGroup();
               });
  }

 private:
  // Reads the first group of groups_, or calls done_ if none is left.
  void ReadNextGroup() {
    if (groups_.empty()) return done_(std::move(directory_));
    const GroupKeys keys(cluster_, *groups_.begin());
    groups_.erase(groups_.begin());
    etcd_.Run({.reads = {keys.config()}}, [self = shared_from_this(),
                                           keys](const absl::StatusOr<EtcdTxnResult>& result) {
      if (!result.ok()) return self->done_(result.status());
      const absl::StatusOr<GroupConfig> config = ParseGroupConfig(result->values[0].value_or(""));
      if (!config.ok()) return self->ReadNextGroup();
      self->ReadGroup(keys, config->replicas);
    });
  }

  void ReadGroup(const GroupKeys& keys, const std::vector<std::string>& replicas) {
    EtcdTxn txn{.reads = {keys.primary(), keys.commit_point()}};
    for (const std::string& node : replicas) txn.reads.push_back(keys.applied(node));
    etcd_.Run(std::move(txn), [self = shared_from_this(), keys,
                               replicas](const absl::StatusOr<EtcdTxnResult>& result) {
      if (!result.ok()) return self->done_(result.status());
      self->AddGroup(keys.group(), replicas, result->values);
      self->ReadNextGroup();
    });
  }

  // `values` are those that ReadGroup() reads.
  void AddGroup(const std::string& name, const std::vector<std::string>& replicas,
                const std::vector<std::optional<std::string>>& values) {
    ClusterDirectory::Group group{.name = name};
    const absl::StatusOr<Primary> primary = ParsePrimary(values[0].value_or(""));
    if (primary.ok()) group.primary = primary->node;
    const absl::StatusOr<CommitPoint> point = ParseCommitPoint(values[1].value_or(""));
    if (point.ok()) group.last_entry = point->sequence;
    for (std::size_t i = 0; i < replicas.size(); ++i) {
      const auto node = nodes_.find(replicas[i]);
      if (node == nodes_.end()) continue;
      group.replicas.push_back(
          {.name = node->first,
           .address = node->second.address,
           .applied_entry = ParseApplied(values[2 + i].value_or("")).value_or(0)});
    }
    directory_.groups.push_back(std::move(group));
  }

  Etcd& etcd_;
  const std::string cluster_;
  Done done_;
  std::map<std::string, NodeRecord> nodes_;
  std::set<std::string> groups_;  // That are not read yet.
  ClusterDirectory directory_;
};

}  // namespace

void ReadClusterDirectory(Etcd& etcd, const std::string& cluster,
                          absl::AnyInvocable<void(absl::StatusOr<ClusterDirectory>)> done) {
  std::make_shared<DirectoryRead>(etcd, cluster, std::move(done))->ReadNodes();
}

void FindGroupOfTenant(Etcd& etcd, const std::string& cluster, const std::string& tenant,
                       absl::AnyInvocable<void(absl::StatusOr<std::optional<std::string>>)> done) {
  etcd.Run({.reads = {TenantKeys(cluster).tenant(tenant)}},
           [done = std::move(done)](const absl::StatusOr<EtcdTxnResult>& result) mutable {
             if (!result.ok()) return done(result.status());
             if (!result->values[0].has_value()) return done(std::nullopt);
             absl::StatusOr<TenantRecord> record = ParseTenant(*result->values[0]);
             if (!record.ok()) return done(record.status());
             done(std::move(record->group));
           });
}

}  // namespace softlookup
