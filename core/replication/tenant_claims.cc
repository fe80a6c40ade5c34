#include "core/replication/tenant_claims.h"

#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/replication/proposer.h"

namespace softlookup {

TenantClaims::TenantClaims(const TenantKeys& keys, std::string group, Etcd& etcd,
                           const Clock& clock, std::size_t tenants_max)
    : keys_(keys),
      group_(std::move(group)),
      tenants_max_(tenants_max),
      etcd_(etcd),
      clock_(clock) {}

void TenantClaims::Claim(const std::string& tenant, Done done) {
  if (const auto known = groups_.find(tenant); known != groups_.end()) {
    return done(StatusOf(tenant, known->second));
  }
  pending_[tenant].waiters.push_back(
      {.done = std::move(done), .deadline = clock_.Now() + kTimeMax});
  Ask();
}

void TenantClaims::Tick() {
  const absl::Time now = clock_.Now();
  Answers late;
  for (auto claim = pending_.begin(); claim != pending_.end();) {
    const std::string& tenant = claim->first;
    auto& pending = claim->second;
    std::erase_if(pending.waiters, [&](Waiter& waiter) {
      if (now < waiter.deadline) return false;
      late.emplace_back(std::move(waiter.done),
                        WriteNotMade(absl::StrCat("etcd does not tell which group the tenant \"",
                                                  tenant, "\" belongs to")));
      return true;
    });
    claim = pending.waiters.empty() ? pending_.erase(claim) : std::next(claim);
  }
  Ask();
  Give(std::move(late));
}

void TenantClaims::End(absl::string_view why) {
  Answers ended;
  while (!pending_.empty()) {
    Take(pending_.begin()->first, WriteNotMade(why), ended);
  }
  Give(std::move(ended));
}

void TenantClaims::Ask() {
  if (pending_.empty()) return;
  if (clock_.Now() >= listed_until_) return ReadList();
  for (auto& [tenant, pending] : pending_) {
    if (pending.is_sent) continue;
    pending.is_sent = true;
    Send(tenant);
  }
}

void TenantClaims::ReadList() {
  if (is_listing_) return;
  is_listing_ = true;
  etcd_.List(keys_.begin(), keys_.end(),
             [this](const absl::StatusOr<std::vector<EtcdKeyValue>>& listed) { OnListed(listed); });
}

void TenantClaims::OnListed(const absl::StatusOr<std::vector<EtcdKeyValue>>& listed) {
  is_listing_ = false;
  is_overfull_ = absl::IsResourceExhausted(listed.status());
  if (!listed.ok() && !is_overfull_) return;  // The next Tick() asks again.
  listed_until_ = clock_.Now() + kListAgeMax;
  if (listed.ok()) {
    for (const EtcdKeyValue& tenant : *listed) Note(keys_.TenantWith(tenant.key), tenant.value);
  }
  Answers answers;
  for (auto claim = pending_.begin(); claim != pending_.end();) {
    const std::string tenant = (claim++)->first;
    const auto known = groups_.find(tenant);
    if (known != groups_.end()) Take(tenant, StatusOf(tenant, known->second), answers);
  }
  Ask();
  Give(std::move(answers));
}

void TenantClaims::Send(const std::string& tenant) {
  EtcdTxn txn{.compares = {}, .puts = {}, .reads = {keys_.tenant(tenant)}};
  // If there is no room for another tenant, it may still be there.
  const bool puts = !is_overfull_ && groups_.size() + puts_in_flight_ < tenants_max_;
  if (puts) {
    ++puts_in_flight_;
    txn.compares = {{keys_.tenant(tenant), std::nullopt}};
    txn.puts = {{keys_.tenant(tenant), EncodeTenant({.group = group_})}};
  }
  // An attempt without an answer may be made late. That changes nothing, because the next one has
  // the same effect.
  etcd_.Run(std::move(txn), [this, tenant, puts](const absl::StatusOr<EtcdTxnResult>& result) {
    if (puts) --puts_in_flight_;
    OnAnswer(tenant, result);
  });
}

void TenantClaims::OnAnswer(const std::string& tenant,
                            const absl::StatusOr<EtcdTxnResult>& result) {
  if (!result.ok()) {
    const auto claim = pending_.find(tenant);
    if (claim != pending_.end()) claim->second.is_sent = false;  // The next Tick() sends it again.
    return;
  }
  const std::optional<std::string>& text = result->values[0];
  if (text.has_value()) Note(tenant, *text);
  Answers answers;
  if (const auto known = groups_.find(tenant); known != groups_.end()) {
    Take(tenant, StatusOf(tenant, known->second), answers);
  } else if (text.has_value()) {
    Take(tenant, WriteNotMade(ParseTenant(*text).status().message()), answers);
  } else {
    Take(tenant,
         MakeError(reasons::kTooManyTenants,
                   absl::StrCat("The cluster has its limit of ", tenants_max_, " tenants"),
                   {{"limit", absl::StrCat(tenants_max_)}}),
         answers);
  }
  Give(std::move(answers));
}

void TenantClaims::Note(absl::string_view tenant, absl::string_view text) {
  if (groups_.contains(tenant)) return;
  absl::StatusOr<TenantRecord> record = ParseTenant(text);
  if (record.ok()) groups_.emplace(tenant, std::move(record->group));
}

absl::Status TenantClaims::StatusOf(absl::string_view tenant, const std::string& group) const {
  if (group == group_) return absl::OkStatus();
  return MakeError(reasons::kTenantElsewhere,
                   absl::StrCat("The tenant \"", tenant, "\" belongs to group ", group,
                                " of the cluster, and this server is of group ", group_),
                   {{"tenant", std::string(tenant)}, {"group", group}});
}

void TenantClaims::Take(const std::string& tenant, const absl::Status& status, Answers& answers) {
  const auto claim = pending_.find(tenant);
  if (claim == pending_.end()) return;
  for (Waiter& waiter : claim->second.waiters) {
    answers.emplace_back(std::move(waiter.done), status);
  }
  pending_.erase(claim);
}

void TenantClaims::Give(Answers answers) {
  for (auto& [done, status] : answers) done(status);
}

}  // namespace softlookup
