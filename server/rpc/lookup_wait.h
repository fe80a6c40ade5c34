#ifndef SOFTLOOKUP_SERVER_RPC_LOOKUP_WAIT_H_
#define SOFTLOOKUP_SERVER_RPC_LOOKUP_WAIT_H_

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "core/base/cancellation.h"
#include "server/rpc/call.h"
#include "server/rpc/status.h"
#include "server/rpc/stream_registry.h"

namespace softlookup::server {

// Ends a lookup's wait for its revision when the server stops or the caller loses its rights. May
// outlive the call.
class LookupWait final : public DrainableStream {
 public:
  LookupWait(Call& call, std::shared_ptr<CancelToken> cancel)
      : cancel_(std::move(cancel)), call_(&call) {}

  // Call this before the call ends. The call is not used after that.
  void End() {
    absl::MutexLock lock(&mutex_);
    call_ = nullptr;
  }
  void Drain() override { cancel_->wait().End(ShuttingDown()); }
  void Recheck() override {
    absl::Status status;
    {
      absl::MutexLock lock(&mutex_);
      if (call_ != nullptr) status = call_->gate().Recheck();
    }
    if (!status.ok()) cancel_->wait().End(status);
  }

 private:
  const std::shared_ptr<CancelToken> cancel_;
  absl::Mutex mutex_;
  Call* call_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_LOOKUP_WAIT_H_
