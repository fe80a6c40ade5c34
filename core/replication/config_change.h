#ifndef SOFTLOOKUP_CORE_REPLICATION_CONFIG_CHANGE_H_
#define SOFTLOOKUP_CORE_REPLICATION_CONFIG_CHANGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
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

  // Begins the change. `copies` of the new replicas must have told etcd that they have applied the
  // commit point: what was committed must be on as many replicas as before. `nonce` was never used.
  // Call this once.
  void Start(std::vector<std::string> replicas, std::uint64_t copies, std::string nonce, Done done);
  // Sends the change again if its outcome is unknown. Call it from time to time.
  void Tick() { txn_.Tick(); }

 private:
  void OnRead(const absl::StatusOr<EtcdTxnResult>& read);
  // Returns FAILED_PRECONDITION if the new replicas do not have what is committed. Otherwise begins
  // the transaction.
  absl::Status Change(const EtcdTxnResult& read);

  const GroupKeys keys_;
  Etcd& etcd_;
  GroupConfig config_;  // The new one.
  std::string nonce_;
  Done done_;
  ResolvedTxn txn_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_REPLICATION_CONFIG_CHANGE_H_
