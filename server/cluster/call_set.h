#ifndef SOFTLOOKUP_SERVER_CLUSTER_CALL_SET_H_
#define SOFTLOOKUP_SERVER_CLUSTER_CALL_SET_H_

#include <grpcpp/client_context.h>

#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace softlookup::server {

// The calls of a client that are in progress. Thread-safe.
class CallSet {
 public:
  // What CancelAll() does with a call.
  enum class AtEnd : bool { kCancel, kFinish };

  // Part of each call, declared before its context, and so destroyed after it. A context has a
  // reference to its channel. The last one must not go on a thread of gRPC that runs callbacks: the
  // last channel waits for these threads to end.
  class Life {
   public:
    explicit Life(std::shared_ptr<CallSet> calls) : calls_(std::move(calls)) {
      absl::MutexLock lock(&calls_->mutex_);
      ++calls_->count_;
    }
    ~Life() {
      absl::MutexLock lock(&calls_->mutex_);
      --calls_->count_;
    }
    Life(const Life&) = delete;
    Life& operator=(const Life&) = delete;

   private:
    const std::shared_ptr<CallSet> calls_;
  };

  // Cancels a call of kCancel at once if CancelAll() was called.
  void Add(grpc::ClientContext& context, AtEnd at_end = AtEnd::kCancel) {
    absl::MutexLock lock(&mutex_);
    contexts_.emplace(&context, at_end);
    if (cancelled_ && at_end == AtEnd::kCancel) context.TryCancel();
  }
  // Must be called before the context is destroyed.
  void Remove(grpc::ClientContext& context) {
    absl::MutexLock lock(&mutex_);
    contexts_.erase(&context);
  }
  // Cancels all calls of kCancel, and waits until all calls are destroyed.
  void CancelAll() {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    for (const auto& [context, at_end] : contexts_) {
      if (at_end == AtEnd::kCancel) context->TryCancel();
    }
    mutex_.Await(absl::Condition(
        +[](int* count) { return *count == 0; }, &count_));
  }

 private:
  absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;  // Of Life objects.
  std::map<grpc::ClientContext*, AtEnd> contexts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_CLUSTER_CALL_SET_H_
