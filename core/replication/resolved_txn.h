#ifndef SOFTLOOKUP_CORE_REPLICATION_RESOLVED_TXN_H_
#define SOFTLOOKUP_CORE_REPLICATION_RESOLVED_TXN_H_

#include <optional>
#include <utility>

#include "softlookup/etcd.h"

namespace softlookup {

// A transaction that is sent again and again until its outcome is known. An attempt that failed
// without an answer may have been made, or may be made later. So the transaction must have a
// compare that can never hold again once it has failed, and must change what that compare reads.
// Then at most one attempt is made, and an answer that says that the compares failed shows whether
// one was. Not thread-safe.
class ResolvedTxn {
 public:
  // `done` gets the first answer. It is not called after Abandon() or the destructor.
  using Done = absl::AnyInvocable<void(EtcdTxnResult)>;

  explicit ResolvedTxn(Etcd& etcd) : etcd_(etcd) {}
  ResolvedTxn(const ResolvedTxn&) = delete;
  ResolvedTxn& operator=(const ResolvedTxn&) = delete;

  // Must not be called while is_running().
  void Start(EtcdTxn txn, Done done) {
    txn_ = std::move(txn);
    done_ = std::move(done);
    Send();
  }
  // Sends the transaction again if the last attempt failed. Call it from time to time.
  void Tick() {
    if (is_running() && !in_flight_) Send();
  }
  // Takes no answer any more. The transaction may still be made.
  void Abandon() {
    done_ = nullptr;
    ++number_;
  }

  bool is_running() const { return done_ != nullptr; }

 private:
  void Send() {
    in_flight_ = true;
    etcd_.Run(txn_, [this, number = number_](absl::StatusOr<EtcdTxnResult> result) {
      if (number != number_) return;
      in_flight_ = false;
      if (!result.ok()) return;
      ++number_;
      std::exchange(done_, nullptr)(*std::move(result));
    });
  }

  Etcd& etcd_;
  EtcdTxn txn_;
  Done done_;
  bool in_flight_ = false;
  int number_ = 0;  // Of the transaction. Answers to another number come too late.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_REPLICATION_RESOLVED_TXN_H_
