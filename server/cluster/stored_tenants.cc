#include "server/cluster/stored_tenants.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/error.h"
#include "softlookup/tenant.h"

namespace softlookup::server {
namespace {

// How often to look whether this replica has become the primary, and to try again after an error.
constexpr absl::Duration kInterval = absl::Milliseconds(500);
// Claims that wait for etcd at a time.
constexpr std::size_t kClaimsAtOnce = 10;

// Comes after all characters that names of stores have.
constexpr char kAfterNames = '\x7f';

}  // namespace

// The claims that wait for etcd.
struct StoredTenants::Claims {
  absl::Mutex mutex;
  bool is_ending ABSL_GUARDED_BY(mutex) = false;
  std::size_t waiting ABSL_GUARDED_BY(mutex) = 0;
  // Of the last Claim(), by tenant. UNAVAILABLE until there is an answer.
  std::vector<absl::Status> outcomes ABSL_GUARDED_BY(mutex);
};

StoredTenants::StoredTenants(Engine& engine, Replication& replication, OnRefused on_refused)
    : engine_(engine),
      replication_(replication),
      on_refused_(std::move(on_refused)),
      claims_(std::make_shared<Claims>()),
      thread_([this] { Tick(); }, kInterval) {}

StoredTenants::~StoredTenants() {
  absl::MutexLock lock(&claims_->mutex);
  claims_->is_ending = true;
}

void StoredTenants::Tick() {
  const ReplicationStats stats = replication_.stats();
  if (!stats.is_primary || stats.epoch == claimed_epoch_) return;
  if (ClaimAll()) claimed_epoch_ = stats.epoch;
}

bool StoredTenants::ClaimAll() {
  std::vector<std::string> tenants;
  std::string last;  // The tenants of stores up to this name are done.
  while (true) {
    // One by one, because a store with a projection can take many megabytes.
    const absl::StatusOr<ListResult> next = engine_.ListStores("", last, 1);
    if (!next.ok()) return false;
    if (next->stores.empty()) return Claim(tenants);
    const std::string& name = next->stores[0].config.name;
    const std::string tenant(TenantOf(name));
    // The stores "TENANT/..." stand together. "TENANT" itself comes before, and others between.
    last = name == tenant ? name : absl::StrCat(tenant, "/", std::string(1, kAfterNames));
    tenants.push_back(tenant);
    if (tenants.size() < kClaimsAtOnce) continue;
    if (!Claim(tenants)) return false;
    tenants.clear();
  }
}

bool StoredTenants::Claim(const std::vector<std::string>& tenants) {
  {
    absl::MutexLock lock(&claims_->mutex);
    claims_->waiting = tenants.size();
    claims_->outcomes.assign(tenants.size(), absl::UnavailableError("no answer yet"));
  }
  for (std::size_t i = 0; i < tenants.size(); ++i) {
    replication_.ClaimTenant(tenants[i], [claims = claims_, i](absl::Status status) {
      absl::MutexLock lock(&claims->mutex);
      claims->outcomes[i] = std::move(status);
      --claims->waiting;
    });
  }
  std::vector<absl::Status> outcomes;
  {
    absl::MutexLock lock(&claims_->mutex);
    const auto is_over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(claims_->mutex) {
      return claims_->waiting == 0 || claims_->is_ending;
    };
    claims_->mutex.Await(absl::Condition(&is_over));
    if (claims_->is_ending) return false;
    outcomes = claims_->outcomes;
  }
  bool is_done = true;
  for (std::size_t i = 0; i < tenants.size(); ++i) {
    const std::string reason = ReasonOf(outcomes[i]);
    if (reason != reasons::kTenantElsewhere.name && reason != reasons::kTooManyTenants.name) {
      is_done = is_done && outcomes[i].ok();
    } else if (told_.size() < kToldMax && told_.insert(tenants[i]).second) {
      on_refused_(tenants[i], outcomes[i]);
    }
  }
  return is_done;
}

}  // namespace softlookup::server
