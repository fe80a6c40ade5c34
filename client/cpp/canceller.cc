#include "softlookup/canceller.h"

#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/cancel_scope.h"

namespace softlookup {

struct Canceller::Calls {
  absl::Mutex mutex;
  bool is_cancelled ABSL_GUARDED_BY(mutex) = false;
  std::set<grpc::ClientContext*> contexts ABSL_GUARDED_BY(mutex);  // In progress.
};

Canceller::Canceller() : calls_(std::make_unique<Calls>()) {}

Canceller::~Canceller() = default;

void Canceller::Cancel() {
  absl::MutexLock lock(&calls_->mutex);
  calls_->is_cancelled = true;
  for (grpc::ClientContext* const context : calls_->contexts) context->TryCancel();
}

namespace client_internal {

CancelScope::CancelScope(Canceller* canceller, grpc::ClientContext& context)
    : canceller_(canceller), context_(context) {
  if (canceller_ == nullptr) return;
  absl::MutexLock lock(&canceller_->calls_->mutex);
  canceller_->calls_->contexts.insert(&context_);
  // gRPC cancels a call that has not begun yet as soon as it begins.
  if (canceller_->calls_->is_cancelled) context_.TryCancel();
}

CancelScope::~CancelScope() {
  if (canceller_ == nullptr) return;
  absl::MutexLock lock(&canceller_->calls_->mutex);
  canceller_->calls_->contexts.erase(&context_);
}

}  // namespace client_internal
}  // namespace softlookup
