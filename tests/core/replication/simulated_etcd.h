#ifndef SOFTLOOKUP_TESTS_CORE_REPLICATION_SIMULATED_ETCD_H_
#define SOFTLOOKUP_TESTS_CORE_REPLICATION_SIMULATED_ETCD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "softlookup/etcd.h"
#include "tests/core/replication/event_loop.h"
#include "tests/core/replication/simulated_process.h"

namespace softlookup::testing {

// How likely an etcd is to do what makes it hard to use; each is of one call.
struct EtcdFaults {
  double lost_request = 0;     // Nothing is done, and the caller gets an error.
  double lost_answer = 0;      // It is done, and the caller gets an error.
  double late = 0;             // The caller gets an error, and then it is done.
  double slow = 0;             // It is done late, or the answer takes long, but comes in time.
  double old_read = 0;         // A call that only reads shows what was true before.
  double old_member = 0;       // The same of one that one member may answer.
  double early_lease_end = 0;  // Of each keep-alive: the lease ends though it was kept alive.
  double dead_kept_alive = 0;  // A lease that has ended is called alive.
  double late_lease_end = 0;   // A lease lives for three times its TTL.
  // Of each keep-alive: the caller stands still for about a TTL when it next reads the clock.
  double stop_at_keep_alive = 0;
};

// The keys of an etcd, which every node sees by a client of its own.
class SimulatedEtcd {
 public:
  // `on_change` is called after each transaction that has put something.
  SimulatedEtcd(EventLoop& loop, std::function<void()> on_change)
      : loop_(loop), on_change_(std::move(on_change)) {}

  EtcdFaults faults;
  bool is_away = false;  // Loses all requests.

  // Returns the value of a key, as it is now.
  std::optional<std::string> Value(const std::string& key) const { return ValueIn(state_, key); }
  void Put(const std::string& key, const std::string& value) { Set(key, value, /*lease=*/0); }
  // What etcd says of its state.
  std::int64_t revision() const { return state_; }

 private:
  friend class SimulatedEtcdClient;

  // What a key has been since a state.
  struct Version {
    std::int64_t state = 0;
    std::optional<std::string> value;  // nullopt: absent.
    std::int64_t lease = 0;
  };

  // Makes a transaction. An error if it names a lease that has ended.
  absl::StatusOr<EtcdTxnResult> Make(const EtcdTxn& txn);
  // Returns the state that a call which only reads is shown: this one, or an older one with that
  // probability.
  std::int64_t ShownState(double old_probability);
  const std::optional<std::string>& ValueIn(std::int64_t state, const std::string& key) const;
  static const std::optional<std::string>& ValueIn(std::int64_t state,
                                                   const std::vector<Version>& versions);
  EtcdTxnResult Read(const EtcdTxn& txn, std::int64_t state) const;
  void Set(const std::string& key, std::optional<std::string> value, std::int64_t lease);
  void EndLease(std::int64_t lease);
  void EndOldLeases();

  EventLoop& loop_;
  const std::function<void()> on_change_;
  std::int64_t state_ = 0;                            // How many transactions have put something.
  std::map<std::string, std::vector<Version>> keys_;  // The newest at the back.
  std::map<std::int64_t, absl::Time> leases_;         // The end of each.
  std::int64_t last_lease_ = 0;
};

// The etcd that one process uses. Its callbacks stop when it is destroyed. The process must outlive
// it.
class SimulatedEtcdClient final : public Etcd {
 public:
  SimulatedEtcdClient(SimulatedEtcd& etcd, SimulatedProcess& process)
      : etcd_(etcd), process_(process) {}

  void Run(EtcdTxn txn, Callback<EtcdTxnResult> done) override;
  void List(std::string begin, std::string end, Callback<std::vector<EtcdKeyValue>> done) override;
  void GrantLease(absl::Duration ttl, Callback<std::int64_t> done) override;
  void KeepAlive(std::int64_t lease, Callback<bool> done) override;
  void RevokeLease(std::int64_t lease) override;

 private:
  // Has `act` done now, late or never, and passes its result or an error to `done`.
  template <typename Result>
  void Call(absl::AnyInvocable<absl::StatusOr<Result>()> act, Callback<Result> done);
  // What comes of a call that has left the process.
  template <typename Result>
  void OnSent(absl::AnyInvocable<absl::StatusOr<Result>()> act, Callback<Result> done);

  SimulatedEtcd& etcd_;
  SimulatedProcess& process_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CORE_REPLICATION_SIMULATED_ETCD_H_
