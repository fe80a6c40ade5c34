#ifndef SOFTLOOKUP_CORE_ENGINE_WAITING_STORES_H_
#define SOFTLOOKUP_CORE_ENGINE_WAITING_STORES_H_

#include <cstdint>
#include <deque>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "core/store/store.h"

namespace softlookup {

// Stores at which a thread has to look, in the order in which it does. Each store is queued at most
// once. The queue does not keep deleted stores alive. Thread-safe.
class WaitingStores {
 public:
  // Stores are queued from now on. Must not be called again after Close().
  void Open();
  // No store is queued from now on, and Take() returns null.
  void Close();

  // Queues `store`. If it is queued already, it keeps its place. Does nothing before Open() and
  // after Close().
  void Add(const std::shared_ptr<Store>& store);
  // Waits until a store is queued that still exists, and takes the first one. Returns null once the
  // queue is closed.
  std::shared_ptr<Store> Take();

 private:
  enum class State { kNew, kOpen, kClosed };

  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return state_ == State::kClosed || !numbers_.empty();
  }

  absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kNew;
  // The numbers of the queued stores, in their order, and the stores by number. A rename keeps a
  // store's number but makes another Store object. Add() then replaces the object here, and the
  // store keeps its place.
  std::deque<std::uint64_t> numbers_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::uint64_t, std::weak_ptr<Store>> stores_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_WAITING_STORES_H_
