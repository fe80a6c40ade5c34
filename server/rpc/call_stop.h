#ifndef SOFTLOOKUP_SERVER_RPC_CALL_STOP_H_
#define SOFTLOOKUP_SERVER_RPC_CALL_STOP_H_

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "core/base/cancellation.h"
#include "server/rpc/call.h"
#include "server/rpc/stream_registry.h"

namespace softlookup::server {

// Ends the work of a unary call that may take minutes: when its deadline passes, when its client
// cancels it, when the server stops, and when its caller loses its rights. Add it to the
// StreamRegistry before the work begins. May outlive the call. Thread-safe.
class CallStop final : public DrainableStream {
 public:
  explicit CallStop(Call& call) : cancel_(call.deadline()), call_(&call) {}

  // Call this before the call is deleted. The call is not used after that.
  void Detach();
  // The work polls it.
  const CancelToken& cancel() const { return cancel_; }
  // Ends the work for the call's client.
  void Cancel() { cancel_.Cancel(); }
  void Drain() override;
  void Recheck() override;
  // Returns the status to answer once the work has ended with `status`, an error. If the server
  // ended the work, that is the cause, else `status`.
  absl::Status CauseOf(const absl::Status& status);

 private:
  // Ends the work because of `cause`. The first cause stays.
  void End(const absl::Status& cause) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  CancelToken cancel_;
  absl::Mutex mutex_;
  Call* call_ ABSL_GUARDED_BY(mutex_);
  absl::Status cause_ ABSL_GUARDED_BY(mutex_);  // Not OK: why the server ended the work.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_CALL_STOP_H_
