#include "tests/core/replication/simulated_etcd.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"

namespace softlookup::testing {
namespace {

constexpr std::int64_t kOldStates = 8;  // That calls which only read may be shown.

absl::Status NoAnswer() { return absl::UnavailableError("etcd does not answer"); }

}  // namespace

absl::StatusOr<EtcdTxnResult> SimulatedEtcd::Make(const EtcdTxn& txn) {
  EndOldLeases();
  if (txn.puts.empty()) {
    return Read(txn, ShownState(txn.from_one_member ? faults.old_member : faults.old_read));
  }
  const bool succeeded = std::ranges::all_of(txn.compares, [&](const EtcdCompare& compare) {
    return ValueIn(state_, compare.key) == compare.value;
  });
  if (succeeded) {
    for (const EtcdPut& put : txn.puts) {
      if (put.lease != 0 && !leases_.contains(put.lease)) {
        return absl::NotFoundError("requested lease not found");
      }
    }
    ++state_;
    for (const EtcdPut& put : txn.puts) Set(put.key, put.value, put.lease);
    on_change_();
  }
  EtcdTxnResult result = Read(txn, state_);
  result.succeeded = succeeded;
  return result;
}

std::int64_t SimulatedEtcd::ShownState(double old_probability) {
  const std::int64_t old_states = std::min(state_, kOldStates);
  const bool is_old = old_states > 0 && loop_.Happens(old_probability);
  return is_old ? state_ - old_states + loop_.Below(old_states) : state_;
}

const std::optional<std::string>& SimulatedEtcd::ValueIn(std::int64_t state,
                                                         const std::string& key) const {
  static const std::vector<Version> kNone;
  const auto found = keys_.find(key);
  return ValueIn(state, found == keys_.end() ? kNone : found->second);
}

const std::optional<std::string>& SimulatedEtcd::ValueIn(std::int64_t state,
                                                         const std::vector<Version>& versions) {
  static const std::optional<std::string> kAbsent;
  for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
    if (version->state <= state) return version->value;
  }
  return kAbsent;
}

EtcdTxnResult SimulatedEtcd::Read(const EtcdTxn& txn, std::int64_t state) const {
  EtcdTxnResult result{.succeeded = true, .revision = state};
  result.values.reserve(txn.reads.size());
  for (const std::string& key : txn.reads) result.values.push_back(ValueIn(state, key));
  return result;
}

void SimulatedEtcd::Set(const std::string& key, std::optional<std::string> value,
                        std::int64_t lease) {
  std::vector<Version>& versions = keys_[key];
  if (!versions.empty() && versions.back().state == state_) versions.pop_back();
  versions.push_back({.state = state_, .value = std::move(value), .lease = lease});
  // The second one already was there in the oldest state that may be shown.
  while (versions.size() > 1 && versions[1].state <= state_ - kOldStates) {
    versions.erase(versions.begin());
  }
}

void SimulatedEtcd::EndLease(std::int64_t lease) {
  if (leases_.erase(lease) == 0) return;
  for (const auto& [key, versions] : keys_) {
    if (versions.back().lease == lease) Set(key, std::nullopt, /*lease=*/0);
  }
}

void SimulatedEtcd::EndOldLeases() {
  std::vector<std::int64_t> old;
  for (const auto& [lease, end] : leases_) {
    if (end <= loop_.Now()) old.push_back(lease);
  }
  for (const std::int64_t lease : old) EndLease(lease);
}

template <typename Result>
void SimulatedEtcdClient::Call(absl::AnyInvocable<absl::StatusOr<Result>()> act,
                               Callback<Result> done) {
  process_.Send([this, alive = std::weak_ptr(alive_), act = std::move(act),
                 done = std::move(done)]() mutable {
    if (!alive.expired()) OnSent<Result>(std::move(act), std::move(done));
  });
}

template <typename Result>
void SimulatedEtcdClient::OnSent(absl::AnyInvocable<absl::StatusOr<Result>()> act,
                                 Callback<Result> done) {
  EventLoop& loop = etcd_.loop_;
  const EtcdFaults& faults = etcd_.faults;
  const auto answer = [this, alive = std::weak_ptr(alive_)](absl::StatusOr<Result> result,
                                                            Callback<Result> to) {
    if (alive.expired()) return;
    process_.Receive([alive, result = std::move(result), to = std::move(to)]() mutable {
      if (!alive.expired()) to(std::move(result));
    });
  };
  const absl::Duration timeout = loop.Between(absl::Seconds(0.5), absl::Seconds(2));
  const auto fail = [&](Callback<Result> to) {
    loop.After(timeout,
               [answer, to = std::move(to)]() mutable { answer(NoAnswer(), std::move(to)); });
  };
  if (etcd_.is_away || loop.Happens(faults.lost_request)) return fail(std::move(done));
  // Also after the client is gone: the request is on its way.
  absl::Duration delay = loop.Between(absl::Milliseconds(1), absl::Milliseconds(20));
  absl::Duration back = loop.Between(absl::Milliseconds(1), absl::Milliseconds(20));
  if (loop.Happens(faults.late)) {
    delay = timeout + loop.Between(absl::ZeroDuration(), absl::Seconds(15));
    fail(std::move(done));
    done = [](const absl::StatusOr<Result>&) {};
  } else if (loop.Happens(faults.lost_answer)) {
    fail(std::move(done));
    done = [](const absl::StatusOr<Result>&) {};
  } else if (faults.slow > 0 && loop.Happens(faults.slow)) {
    (loop.Happens(0.5) ? delay : back) =
        loop.Between(absl::ZeroDuration(), timeout - absl::Milliseconds(20));
  }
  loop.After(delay,
             [loop = &loop, back, answer, act = std::move(act), done = std::move(done)]() mutable {
               loop->After(back, [answer, result = act(), done = std::move(done)]() mutable {
                 answer(std::move(result), std::move(done));
               });
             });
}

void SimulatedEtcdClient::Run(EtcdTxn txn, Callback<EtcdTxnResult> done) {
  Call<EtcdTxnResult>([etcd = &etcd_, txn = std::move(txn)] { return etcd->Make(txn); },
                      std::move(done));
}

void SimulatedEtcdClient::List(std::string begin, std::string end,
                               Callback<std::vector<EtcdKeyValue>> done) {
  Call<std::vector<EtcdKeyValue>>(
      [etcd = &etcd_, begin = std::move(begin),
       end = std::move(end)]() -> absl::StatusOr<std::vector<EtcdKeyValue>> {
        etcd->EndOldLeases();
        const std::int64_t state = etcd->ShownState(etcd->faults.old_read);
        std::vector<EtcdKeyValue> listed;
        const auto& keys = etcd->keys_;
        for (auto key = keys.lower_bound(begin); key != keys.end() && key->first < end; ++key) {
          const std::optional<std::string>& value = SimulatedEtcd::ValueIn(state, key->second);
          if (value.has_value()) listed.push_back({.key = key->first, .value = *value});
        }
        if (listed.size() > Etcd::kListedKeysMax) {
          return absl::ResourceExhaustedError("too many keys");
        }
        return listed;
      },
      std::move(done));
}

void SimulatedEtcdClient::GrantLease(absl::Duration ttl, Callback<std::int64_t> done) {
  Call<std::int64_t>(
      [etcd = &etcd_, ttl]() -> absl::StatusOr<std::int64_t> {
        const std::int64_t lease = ++etcd->last_lease_;
        const bool is_late = etcd->loop_.Happens(etcd->faults.late_lease_end);
        etcd->leases_[lease] = etcd->loop_.Now() + (is_late ? 3 : 1) * ttl;
        return lease;
      },
      std::move(done));
}

void SimulatedEtcdClient::KeepAlive(std::int64_t lease, Callback<bool> done) {
  Call<bool>(
      [etcd = &etcd_, lease]() -> absl::StatusOr<bool> {
        etcd->EndOldLeases();
        if (etcd->loop_.Happens(etcd->faults.early_lease_end)) etcd->EndLease(lease);
        const auto found = etcd->leases_.find(lease);
        if (found == etcd->leases_.end()) {
          return etcd->loop_.Happens(etcd->faults.dead_kept_alive);
        }
        found->second = std::max(found->second, etcd->loop_.Now() + absl::Seconds(6));
        return true;
      },
      std::move(done));
  if (etcd_.loop_.Happens(etcd_.faults.stop_at_keep_alive)) {
    process_.StandStill(/*readings=*/0, etcd_.loop_.Between(absl::Seconds(2), absl::Seconds(7)));
  }
}

void SimulatedEtcdClient::RevokeLease(std::int64_t lease) {
  Call<bool>(
      [etcd = &etcd_, lease]() -> absl::StatusOr<bool> {
        etcd->EndLease(lease);
        return true;
      },
      [](const absl::StatusOr<bool>&) {});
}

}  // namespace softlookup::testing
