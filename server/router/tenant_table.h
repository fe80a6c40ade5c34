#ifndef SOFTLOOKUP_SERVER_ROUTER_TENANT_TABLE_H_
#define SOFTLOOKUP_SERVER_ROUTER_TENANT_TABLE_H_

#include <atomic>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/router/cluster_watch.h"

namespace softlookup::server {

// Tells in which group a store is, or would be. A tenant never changes its group, so what etcd has
// told is kept. Thread-safe.
class TenantTable {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<std::string>)>;

  // `watch` must outlive this and its calls.
  TenantTable(ClusterWatch& watch, std::string cluster)
      : watch_(watch), cluster_(std::move(cluster)) {}

  // Calls `done` with the name of the group of `store`, perhaps before this returns. A store whose
  // tenant no group has yet: the group that would get the tenant. CLUSTER_UNAVAILABLE if there is
  // no group, or etcd does not answer.
  void FindGroup(absl::string_view store, Done done);
  // A node has told that another group has the tenant of `store`.
  void Learn(absl::string_view store, const std::string& group);

 private:
  // How long it is kept that no group has a tenant, and for how many tenants anything is.
  static constexpr absl::Duration kAbsentKept = absl::Seconds(1);
  static constexpr std::size_t kTenantsMax = 100'000;
  // How many questions to etcd are in progress at most. Anybody can make up names of stores.
  static constexpr int kReadsMax = 256;

  struct Tenant {
    std::string group;  // Empty: none has it.
    absl::Time until;   // When this is not known any more.
  };

  // Returns the group if it is known; "" if etcd has to be asked.
  std::string KnownGroup(const std::string& tenant, const ClusterMap& map);
  void Keep(const std::string& tenant, Tenant found);

  ClusterWatch& watch_;
  const std::string cluster_;
  std::atomic<int> reads_{0};  // Questions in progress.
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Tenant> tenants_ ABSL_GUARDED_BY(mutex_);
};

// The error of a call that no group of servers can answer now: `why`.
absl::Status ClusterUnavailable(absl::string_view why);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_TENANT_TABLE_H_
