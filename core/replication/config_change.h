#ifndef SOFTLOOKUP_CORE_REPLICATION_CONFIG_CHANGE_H_
#define SOFTLOOKUP_CORE_REPLICATION_CONFIG_CHANGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/replication/group_records.h"
#include "core/replication/resolved_txn.h"
#include "softlookup/etcd.h"

namespace softlookup {

// Changes the replicas of a group. The change has a commit point of its own: the same entry with a
// new nonce. So an entry that is being named is not named under the old configuration any more, and
// its primary, if it stays one, goes on under the new one. Not thread-safe.
class ConfigChange {
 public:
  // OK: the group has the configuration. FAILED_PRECONDITION: it has not, and the message says why.
  // Other errors: it may have it now, or later.
  using Done = absl::AnyInvocable<void(absl::Status)>;

  // `etcd` must outlive this and all calls in progress.
  ConfigChange(const GroupKeys& keys, Etcd& etcd) : keys_(keys), etcd_(etcd), txn_(etcd) {}
  ConfigChange(const ConfigChange&) = delete;
  ConfigChange& operator=(const ConfigChange&) = delete;

  // Returns the configuration that the group is to have in place of `before`, or an error, with
  // which the change then ends. Its version is not used.
  using Edit = absl::AnyInvocable<absl::StatusOr<GroupConfig>(const GroupConfig& before)>;

  // Begins the change. As many of the new replicas as it has copies must have told etcd that they
  // have applied the commit point: what was committed must be on as many replicas as the new
  // configuration says. A replica that is added counts as having nothing. A change that changes
  // nothing is OK. `primary` is what etcd must have as the primary of the group; empty: anything.
  // `nonce` was never used. Call this once.
  void Start(Edit edit, std::string primary, std::string nonce, Done done);
  // Sends the change again if its outcome is unknown. Call it from time to time.
  void Tick() { txn_.Tick(); }

 private:
  void OnConfigRead(const absl::StatusOr<EtcdTxnResult>& read);
  // Sets config_ to what the group is to have. nullopt: it has that.
  absl::StatusOr<std::optional<EtcdTxn>> EditConfig(const EtcdTxnResult& read);
  void OnRead(const absl::StatusOr<EtcdTxnResult>& read);
  // Returns FAILED_PRECONDITION if the new replicas do not have what is committed. Otherwise begins
  // the transaction.
  absl::Status Change(const EtcdTxnResult& read);

  const GroupKeys keys_;
  Etcd& etcd_;
  Edit edit_;
  std::string primary_;
  std::string before_;              // The configuration that config_ was made of, as etcd has it.
  GroupConfig config_;              // The new one.
  std::vector<std::string> added_;  // Its replicas that were none before.
  std::string nonce_;
  Done done_;
  ResolvedTxn txn_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_REPLICATION_CONFIG_CHANGE_H_
