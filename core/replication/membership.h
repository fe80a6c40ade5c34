#ifndef SOFTLOOKUP_CORE_REPLICATION_MEMBERSHIP_H_
#define SOFTLOOKUP_CORE_REPLICATION_MEMBERSHIP_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/replication/config_change.h"
#include "core/replication/group_records.h"
#include "core/replication/proposer.h"
#include "softlookup/etcd.h"

namespace softlookup {

// Changes which replicas a group has, for the primary of the group. A new replica has nothing yet,
// so it does not count for copies at once. Once more than half of the replicas have what is
// committed, Tick() makes that many copies the rule. Not thread-safe.
class Membership {
 public:
  // Maximum number of replicas of a group.
  static constexpr std::size_t kReplicasMax = 5;

  // OK: the group has the replica, or has it no more. FAILED_PRECONDITION: nothing was changed, and
  // the message says why. UNAVAILABLE: it may be changed later.
  using Done = absl::AnyInvocable<void(absl::Status)>;

  // All referred to must outlive this and all calls in progress.
  Membership(std::string node, const GroupKeys& keys, Etcd& etcd, const Clock& clock,
             MakeNonce& make_nonce)
      : node_(std::move(node)), keys_(keys), etcd_(etcd), clock_(clock), make_nonce_(make_nonce) {}
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  void Add(const std::string& node, Done done);
  // Refuses to remove the primary, which is this node, and with it the last replica.
  void Remove(const std::string& node, Done done);

  // Goes on. Call this between Begin() and End() only. `config`, the last entry `committed` and the
  // `applied` entries of nodes are what the primary saw last in etcd.
  void Tick(const GroupConfig& config, std::uint64_t committed,
            const std::map<std::string, std::uint64_t>& applied);
  // The node has become the primary, as etcd has it.
  void Begin(Primary primary) { primary_ = std::move(primary); }
  // The node is no longer the primary. Ends the change in progress.
  void End();

  // Whether a change is being made. No entry must be named meanwhile: the replicas must all have
  // the last one.
  bool is_changing() const { return done_ != nullptr; }

 private:
  // How long the replicas have to apply what was committed before the change.
  static constexpr absl::Duration kTimeMax = absl::Seconds(5);
  static constexpr absl::Duration kRetryInterval = absl::Milliseconds(200);
  // Nobody waits for more copies, so writes are held for a shorter time, and after each failure for
  // twice as long not again.
  static constexpr absl::Duration kRaiseTimeMax = absl::Seconds(2);
  static constexpr absl::Duration kRaiseIntervalMin = absl::Seconds(5);
  static constexpr absl::Duration kRaiseIntervalMax = absl::Minutes(5);
  // By how many entries a replica may be behind when Tick() begins to make more copies the rule.
  static constexpr std::uint64_t kRaiseWithin = 64;

  static std::uint64_t MajorityOf(std::size_t replicas) { return replicas / 2 + 1; }
  // Copied for each attempt.
  using Edit = std::function<absl::StatusOr<GroupConfig>(const GroupConfig& before)>;

  void Start(Edit edit, Done done, absl::Duration time_max = kTimeMax);
  void Try();
  void Finish(absl::Status status);

  const std::string node_;
  const GroupKeys keys_;
  Etcd& etcd_;
  const Clock& clock_;
  MakeNonce& make_nonce_;
  Primary primary_;
  absl::Time next_raise_ = absl::InfinitePast();
  absl::Duration raise_interval_ = kRaiseIntervalMin;

  // The change in progress. `done_` is null if there is none.
  Done done_;
  Edit edit_;
  absl::Time deadline_;
  absl::Time next_try_;
  absl::Status last_error_;  // Of the last attempt.
  // The last attempt. It can go on after the change was given up.
  std::optional<ConfigChange> attempt_;
  bool is_trying_ = false;  // Whether it has no outcome yet.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_REPLICATION_MEMBERSHIP_H_
