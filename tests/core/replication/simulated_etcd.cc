#include "tests/core/replication/simulated_etcd.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"

namespace softlookup::testing {
namespace {

constexpr std::size_t kStatesKept = 8;

absl::Status NoAnswer() { return absl::UnavailableError("etcd does not answer"); }

}  // namespace

std::optional<std::string> SimulatedEtcd::Value(const std::string& key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? std::nullopt : std::optional(found->second.value);
}

absl::StatusOr<EtcdTxnResult> SimulatedEtcd::Make(const EtcdTxn& txn) {
  EndOldLeases();
  if (txn.puts.empty()) return Read(txn, Shown());
  const bool succeeded = std::ranges::all_of(txn.compares, [&](const EtcdCompare& compare) {
    return Value(compare.key) == compare.value;
  });
  if (succeeded) {
    for (const EtcdPut& put : txn.puts) {
      if (put.lease != 0 && !leases_.contains(put.lease)) {
        return absl::NotFoundError("requested lease not found");
      }
    }
    before_.push_back(keys_);
    if (before_.size() > kStatesKept) before_.pop_front();
    for (const EtcdPut& put : txn.puts) keys_[put.key] = {.value = put.value, .lease = put.lease};
    on_change_();
  }
  EtcdTxnResult result = Read(txn, keys_);
  result.succeeded = succeeded;
  return result;
}

const SimulatedEtcd::Keys& SimulatedEtcd::Shown() {
  const bool is_old = !before_.empty() && loop_.Happens(faults.old_read);
  return is_old ? before_[loop_.Below(std::ssize(before_))] : keys_;
}

EtcdTxnResult SimulatedEtcd::Read(const EtcdTxn& txn, const Keys& keys) {
  EtcdTxnResult result{.succeeded = true};
  for (const std::string& key : txn.reads) {
    const auto found = keys.find(key);
    result.values.push_back(found == keys.end() ? std::nullopt
                                                : std::optional(found->second.value));
  }
  return result;
}

void SimulatedEtcd::EndLease(std::int64_t lease) {
  if (leases_.erase(lease) == 0) return;
  std::erase_if(keys_, [lease](const auto& key) { return key.second.lease == lease; });
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
  const EtcdFaults& faults = etcd_.faults;
  const auto answer = [alive = std::weak_ptr(alive_)](absl::StatusOr<Result> result,
                                                      Callback<Result>& to) {
    if (!alive.expired()) to(std::move(result));
  };
  const absl::Duration timeout = loop_.Between(absl::Seconds(0.5), absl::Seconds(2));
  const auto fail = [&](Callback<Result> to) {
    loop_.After(timeout, [answer, to = std::move(to)]() mutable { answer(NoAnswer(), to); });
  };
  if (etcd_.is_away || loop_.Happens(faults.lost_request)) return fail(std::move(done));
  // Also after the client is gone: the request is on its way.
  absl::Duration delay = loop_.Between(absl::Milliseconds(1), absl::Milliseconds(20));
  if (loop_.Happens(faults.late)) {
    delay = timeout + loop_.Between(absl::ZeroDuration(), absl::Seconds(15));
    fail(std::move(done));
    done = [](const absl::StatusOr<Result>&) {};
  } else if (loop_.Happens(faults.lost_answer)) {
    fail(std::move(done));
    done = [](const absl::StatusOr<Result>&) {};
  }
  loop_.After(delay, [this_loop = &loop_, answer, act = std::move(act),
                      done = std::move(done)]() mutable {
    absl::StatusOr<Result> result = act();
    const absl::Duration back = this_loop->Between(absl::Milliseconds(1), absl::Milliseconds(20));
    this_loop->After(back, [answer, result = std::move(result), done = std::move(done)]() mutable {
      answer(std::move(result), done);
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
        const SimulatedEtcd::Keys& keys = etcd->Shown();
        std::vector<EtcdKeyValue> listed;
        for (auto key = keys.lower_bound(begin); key != keys.end() && key->first < end; ++key) {
          listed.push_back({.key = key->first, .value = key->second.value});
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
