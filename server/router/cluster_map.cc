#include "server/router/cluster_map.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/security/auth_rules.h"

namespace softlookup::server {

const ClusterMap::Group* ClusterMap::Find(absl::string_view group) const {
  const auto found = std::ranges::find(groups, group, &Group::name);
  return found == groups.end() ? nullptr : &*found;
}

const ClusterMap::Group& ClusterMap::GroupOfNewTenant(absl::string_view tenant) const {
  // Rendezvous hashing: the group whose hash with the tenant is the largest.
  return *std::ranges::max_element(groups, {}, [&](const Group& group) {
    return Sha256Of(absl::StrCat(group.name, "/", tenant));
  });
}

}  // namespace softlookup::server
