#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_CLUSTER_DIRECTORY_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_CLUSTER_DIRECTORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "softlookup/etcd.h"

namespace softlookup {

// What etcd says of all groups of a cluster. Its parts are not as of one moment.
struct ClusterDirectory {
  struct Node {
    std::string name;
    std::string address;  // HOST:PORT at which it listens for other nodes and for routers.
    std::uint64_t applied_entry = 0;  // That it has told to have applied and synced.

    bool operator==(const Node&) const = default;
  };
  struct Group {
    std::string name;
    std::string primary;           // Empty: there is none now.
    std::uint64_t last_entry = 0;  // That is committed.
    std::vector<Node> replicas;    // Those that have told an address.

    bool operator==(const Group&) const = default;
  };

  std::vector<Group> groups;  // By name, ascending.
};

// Reads the directory of `cluster`. The rules of Etcd hold for the call and for `done`, and `etcd`
// must outlive the call. The errors are those of Etcd. Leaves out what is malformed, and groups
// without a configuration.
void ReadClusterDirectory(Etcd& etcd, const std::string& cluster,
                          absl::AnyInvocable<void(absl::StatusOr<ClusterDirectory>)> done);

// Reads which group a tenant of `cluster` belongs to. nullopt: none yet. The rules are as above.
void FindGroupOfTenant(Etcd& etcd, const std::string& cluster, const std::string& tenant,
                       absl::AnyInvocable<void(absl::StatusOr<std::optional<std::string>>)> done);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_CLUSTER_DIRECTORY_H_
