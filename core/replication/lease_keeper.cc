#include "core/replication/lease_keeper.h"

#include <algorithm>
#include <utility>

namespace softlookup {

void LeaseKeeper::Tick() {
  const absl::Time now = clock_.Now();
  if (now < next_request_) return;
  // Asks again after a third of the TTL, answered or not. An answer that comes late is of use, too.
  next_request_ = now + ttl_ / 3;
  if (lease_.has_value() && now >= alive_until_) lease_.reset();
  if (!lease_.has_value()) {
    etcd_.GrantLease(ttl_,
                     [this, now](absl::StatusOr<std::int64_t> lease) { OnGranted(now, lease); });
    return;
  }
  etcd_.KeepAlive(*lease_, [this, lease = *lease_, now](absl::StatusOr<bool> is_alive) {
    OnKept(lease, now, is_alive);
  });
}

std::optional<std::int64_t> LeaseKeeper::lease() const {
  return clock_.Now() < alive_until_ ? lease_ : std::nullopt;
}

void LeaseKeeper::Revoke() {
  if (!lease_.has_value()) return;
  etcd_.RevokeLease(*lease_);
  lease_.reset();
  next_request_ = absl::InfinitePast();
}

void LeaseKeeper::OnGranted(absl::Time sent, const absl::StatusOr<std::int64_t>& lease) {
  if (!lease.ok()) return;
  // Also if the one at hand has ended: whoever leads by it must first see that there is none.
  if (lease_.has_value()) return etcd_.RevokeLease(*lease);
  lease_ = *lease;
  alive_until_ = sent + ttl_;
  // If the answer came late, another lease was asked for, which has put the next request off.
  next_request_ = std::min(next_request_, sent + ttl_ / 3);
}

void LeaseKeeper::OnKept(std::int64_t lease, absl::Time sent,
                         const absl::StatusOr<bool>& is_alive) {
  if (!is_alive.ok() || lease_ != lease) return;
  if (!*is_alive) {
    lease_.reset();
    next_request_ = absl::InfinitePast();  // Ask for another one at once.
    return;
  }
  // lease() has said that it ended, so its keys in etcd may have been given up. They must end.
  if (clock_.Now() >= alive_until_) return Revoke();
  alive_until_ = std::max(alive_until_, sent + ttl_);
}

}  // namespace softlookup
