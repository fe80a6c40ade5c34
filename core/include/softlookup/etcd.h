#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ETCD_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ETCD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace softlookup {

// Holds if the key has exactly this value. Without a value it holds if the key is absent. Revisions
// are not compared: a member that was restored from a snapshot can give an old revision again.
struct EtcdCompare {
  std::string key;
  std::optional<std::string> value;
};

struct EtcdPut {
  std::string key;
  std::string value;
  std::int64_t lease = 0;  // 0: none. Otherwise the key goes away when the lease does.
};

// Makes all puts if all compares hold, and no put otherwise. Then reads keys in either case.
struct EtcdTxn {
  std::vector<EtcdCompare> compares;
  std::vector<EtcdPut> puts;
  std::vector<std::string> reads;
  // Reads what the member that is asked has, which then asks no other member. What it has may be
  // older than what another has told a watch, and stays old for as long as it stands still. Only
  // for a transaction without compares and puts.
  bool from_one_member = false;
};

struct EtcdTxnResult {
  bool succeeded = false;                          // Whether all compares held.
  std::vector<std::optional<std::string>> values;  // Of `reads`, all at one moment.
  // That of etcd at this moment. A larger one is later, as long as no member was restored from a
  // snapshot.
  std::int64_t revision = 0;
};

// Called after a change, with a revision of etcd that has it.
using OnEtcdChange = absl::AnyInvocable<void(std::int64_t revision)>;

struct EtcdKeyValue {
  std::string key;
  std::string value;

  bool operator==(const EtcdKeyValue&) const = default;
};

// What a group needs of etcd. The caller must call these functions on one thread. The callbacks run
// on the same thread, after the function has returned.
class Etcd {
 public:
  template <typename Result>
  using Callback = absl::AnyInvocable<void(absl::StatusOr<Result>)>;

  // The most keys that List() lists. A tenth more than a cluster may have of tenants: groups that
  // begin tenants at the same time can exceed that limit a little.
  static constexpr std::size_t kListedKeysMax = 110'000;

  virtual ~Etcd() = default;

  // Runs a transaction. An error tells nothing about its effect: the transaction may have been
  // made, may be made later, or never. If `txn` puts nothing, the values that it reads can be older
  // than those that another read has returned.
  virtual void Run(EtcdTxn txn, Callback<EtcdTxnResult> done) = 0;

  // Lists the keys in [begin, end) with their values, as of one moment, in the order of the keys.
  // The values should have some hundred bytes at most. The moment can be before that of another
  // read. RESOURCE_EXHAUSTED if there are more than kListedKeysMax keys.
  virtual void List(std::string begin, std::string end,
                    Callback<std::vector<EtcdKeyValue>> done) = 0;

  // Makes a lease, which ends if it is not kept alive for `ttl`.
  virtual void GrantLease(absl::Duration ttl, Callback<std::int64_t> done) = 0;
  // Keeps a lease alive. Passes on whether it is alive. That is a hint only: etcd can call a lease
  // alive that has ended, and can end one that it has just kept alive.
  virtual void KeepAlive(std::int64_t lease, Callback<bool> done) = 0;
  // Ends a lease now, if etcd answers. Tells nobody how it went.
  virtual void RevokeLease(std::int64_t lease) = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ETCD_H_
