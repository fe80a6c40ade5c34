#ifndef SOFTLOOKUP_SERVER_CLUSTER_STORED_TENANTS_H_
#define SOFTLOOKUP_SERVER_CLUSTER_STORED_TENANTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "server/cluster/task_thread.h"
#include "softlookup/engine.h"
#include "softlookup/replication.h"

namespace softlookup::server {

// Claims the tenants of all stores of a replica each time it has become the primary, in the
// background. New stores claim theirs by themselves; this is for those that were made before there
// was a group, or by a version that claimed nothing.
class StoredTenants {
 public:
  // Gets a tenant with stores here that the group does not get, with TENANT_ELSEWHERE or
  // TOO_MANY_TENANTS.
  using OnRefused = std::function<void(const std::string& tenant, const absl::Status& why)>;

  // Maximum number of tenants that OnRefused is called for.
  static constexpr std::size_t kToldMax = 100;

  // The stores of `engine` must be loaded. `engine` and `replication` must outlive this.
  // `on_refused` is called on a thread of this object, once for a tenant.
  StoredTenants(Engine& engine, Replication& replication, OnRefused on_refused);
  // Does not wait for etcd.
  ~StoredTenants();
  StoredTenants(const StoredTenants&) = delete;
  StoredTenants& operator=(const StoredTenants&) = delete;

 private:
  struct Claims;

  void Tick();
  // Return whether all tenants were claimed, or refused for good.
  bool ClaimAll();
  bool Claim(const std::vector<std::string>& tenants);

  Engine& engine_;
  Replication& replication_;
  const OnRefused on_refused_;
  const std::shared_ptr<Claims> claims_;   // Callbacks may outlive this object.
  std::uint64_t claimed_epoch_ = 0;        // Of the last term in which ClaimAll() was done.
  absl::flat_hash_set<std::string> told_;  // Tenants that on_refused_ was called for.
  TaskThread thread_;                      // Declared last, because it uses the other members.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_CLUSTER_STORED_TENANTS_H_
