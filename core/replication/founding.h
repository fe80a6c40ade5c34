#ifndef SOFTLOOKUP_CORE_REPLICATION_FOUNDING_H_
#define SOFTLOOKUP_CORE_REPLICATION_FOUNDING_H_

#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "core/replication/entry_store.h"
#include "core/replication/group_records.h"
#include "core/replication/proposer.h"
#include "core/replication/resolved_txn.h"
#include "softlookup/etcd.h"

namespace softlookup {

// Finds out whether a node is a replica of its group. If etcd has no group of this name, founds it
// with this node as its only replica. Not thread-safe.
class Founding {
 public:
  // What the directory of the node says.
  struct Node {
    std::string name;
    AppliedEntry applied;
    bool has_joined = false;  // etcd has had it as a replica before.
  };
  // OK: etcd has the node as a replica. FAILED_PRECONDITION or DATA_LOSS: it never will by itself,
  // and the message says why.
  using Done = absl::AnyInvocable<void(absl::Status)>;

  // All referred to must outlive this and all calls in progress.
  Founding(const GroupKeys& keys, Etcd& etcd, MakeNonce& make_nonce)
      : keys_(keys), make_nonce_(make_nonce), reading_(etcd), making_(etcd) {}
  Founding(const Founding&) = delete;
  Founding& operator=(const Founding&) = delete;

  // Call this once. `done` is called once etcd has answered.
  void Start(Node node, Done done);
  // Asks again if there was no answer. Call it from time to time.
  void Tick();

 private:
  void Read();
  void OnRead(const EtcdTxnResult& read);
  // Checks that the directory fits what etcd says of the group.
  absl::Status Check(const EtcdTxnResult& read) const;
  void MakeGroup();

  const GroupKeys keys_;
  MakeNonce& make_nonce_;
  Node node_;
  Done done_;
  ResolvedTxn reading_;
  ResolvedTxn making_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_REPLICATION_FOUNDING_H_
