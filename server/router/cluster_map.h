#ifndef SOFTLOOKUP_SERVER_ROUTER_CLUSTER_MAP_H_
#define SOFTLOOKUP_SERVER_ROUTER_CLUSTER_MAP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/router/node.h"

namespace softlookup::server {

// The groups of a cluster, as a router last knew them. Immutable.
struct ClusterMap {
  struct Replica {
    std::shared_ptr<Node> node;
    // Whether it has what was committed some seconds ago, so that it may answer lookups.
    bool is_current = true;
  };
  struct Group {
    std::string name;
    std::shared_ptr<Node> primary;  // Null: there is none now, or its address is not known.
    std::vector<Replica> replicas;
  };

  std::vector<Group> groups;  // By name, ascending.

  // Null if there is no group of this name.
  const Group* Find(absl::string_view group) const;
  // Returns the group that a new tenant is to live in. The same for all routers that know the same
  // groups, and for most tenants also when a group is added. There must be a group.
  const Group& GroupOfNewTenant(absl::string_view tenant) const;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_CLUSTER_MAP_H_
