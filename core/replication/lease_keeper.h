#ifndef SOFTLOOKUP_CORE_REPLICATION_LEASE_KEEPER_H_
#define SOFTLOOKUP_CORE_REPLICATION_LEASE_KEEPER_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "softlookup/etcd.h"

namespace softlookup {

// Keeps a lease of a node alive, and makes a new one when the last has ended. The lease is a hint:
// the safety of a group rests on comparisons alone (etcd.h). Not thread-safe.
class LeaseKeeper {
 public:
  // `etcd` and `clock` must outlive this and all calls in progress.
  LeaseKeeper(Etcd& etcd, const Clock& clock, absl::Duration ttl)
      : etcd_(etcd), clock_(clock), ttl_(ttl) {}
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

  // Asks for a lease or keeps it alive, if that is due. Call it several times in each third of the
  // TTL.
  void Tick();
  // Returns the lease if it is likely to be alive; nullopt otherwise. A lease counts as alive for
  // the TTL since the request was sent that last kept it alive, if the answer came in that time. A
  // lease that is not returned any more never is again.
  std::optional<std::int64_t> lease() const;
  // Ends the lease now. The next Tick() asks for another.
  void Revoke();

 private:
  void OnGranted(absl::Time sent, const absl::StatusOr<std::int64_t>& lease);
  void OnKept(std::int64_t lease, absl::Time sent, const absl::StatusOr<bool>& is_alive);

  Etcd& etcd_;
  const Clock& clock_;
  const absl::Duration ttl_;
  std::optional<std::int64_t> lease_;
  absl::Time alive_until_ = absl::InfinitePast();
  absl::Time next_request_ = absl::InfinitePast();
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_REPLICATION_LEASE_KEEPER_H_
