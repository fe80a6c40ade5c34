#ifndef SOFTLOOKUP_CORE_REPLICATION_TENANT_CLAIMS_H_
#define SOFTLOOKUP_CORE_REPLICATION_TENANT_CLAIMS_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/replication/group_records.h"
#include "softlookup/etcd.h"

namespace softlookup {

// Claims tenants for one group of a cluster. A tenant belongs to the group whose claim etcd has
// made first, for ever. Not thread-safe.
//
// Reads all tenants of the cluster before it claims one, so that it asks etcd nothing about those
// that are known, and can tell how many there are.
class TenantClaims {
 public:
  // Tenants of a cluster. Groups that claim at the same time can exceed this by what they claim
  // within kListAgeMax, which is less than Etcd::kListedKeysMax allows.
  static constexpr std::size_t kTenantsMax = 100'000;
  // How long a claim may wait for etcd.
  static constexpr absl::Duration kTimeMax = absl::Seconds(5);
  // How old the list of tenants may be when a tenant is claimed that is not known.
  static constexpr absl::Duration kListAgeMax = absl::Seconds(5);

  using Done = absl::AnyInvocable<void(absl::Status)>;

  // `tenants_max` differs from kTenantsMax in tests only. `etcd` and `clock` must outlive this, and
  // this must outlive all calls in progress.
  TenantClaims(const TenantKeys& keys, std::string group, Etcd& etcd, const Clock& clock,
               std::size_t tenants_max = kTenantsMax);
  TenantClaims(const TenantClaims&) = delete;
  TenantClaims& operator=(const TenantClaims&) = delete;

  // `done` gets OK once the tenant belongs to the group. TENANT_ELSEWHERE if it belongs to another
  // one. TOO_MANY_TENANTS if it is new, and the cluster has kTenantsMax others. Proposer's
  // WriteNotMade() if etcd has not told after kTimeMax; the tenant may belong to the group then.
  //
  // `tenant` must have the characters of a store's name, without '/'. Callers bound how many claims
  // wait.
  void Claim(const std::string& tenant, Done done);
  // Asks etcd again if it has not answered. Ends claims that have waited for too long. Call it
  // several times a second.
  void Tick();
  // Ends all claims that wait, because of `why`.
  void End(absl::string_view why);

 private:
  struct Waiter {
    Done done;
    absl::Time deadline;
  };
  // A claim of one tenant, for which several callers may wait.
  struct Pending {
    std::vector<Waiter> waiters;
    bool is_sent = false;  // Whether etcd has still to answer.
  };
  // Callers with what they get. They are called last, because they may claim again.
  using Answers = std::vector<std::pair<Done, absl::Status>>;

  // Asks etcd what the claims that wait need to know.
  void Ask();
  void ReadList();
  void OnListed(const absl::StatusOr<std::vector<EtcdKeyValue>>& listed);
  void Send(const std::string& tenant);
  void OnAnswer(const std::string& tenant, const absl::StatusOr<EtcdTxnResult>& result);
  // Notes what etcd holds of a tenant, which never changes. Leaves malformed text out.
  void Note(absl::string_view tenant, absl::string_view text);
  // The answer to a claim of `tenant`, which belongs to `group`.
  absl::Status StatusOf(absl::string_view tenant, const std::string& group) const;
  // Ends the claim of `tenant`, if there is one.
  void Take(const std::string& tenant, const absl::Status& status, Answers& answers);
  static void Give(Answers answers);

  const TenantKeys keys_;
  const std::string group_;
  const std::size_t tenants_max_;
  Etcd& etcd_;
  const Clock& clock_;

  absl::flat_hash_map<std::string, std::string> groups_;  // By tenant.
  absl::Time listed_until_ = absl::InfinitePast();        // When the list is too old.
  bool is_listing_ = false;
  bool is_overfull_ = false;                // Whether etcd has more tenants than it lists.
  std::map<std::string, Pending> pending_;  // By tenant.
  std::size_t puts_in_flight_ = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_REPLICATION_TENANT_CLAIMS_H_
