#include "core/engine/waiting_stores.h"

#include <utility>

#include "core/base/check.h"

namespace softlookup {
void WaitingStores::Open() {
  absl::MutexLock lock(&mutex_);
  SOFTLOOKUP_CHECK(state_ == State::kNew) << "opened twice";
  state_ = State::kOpen;
}

void WaitingStores::Close() {
  absl::MutexLock lock(&mutex_);
  state_ = State::kClosed;
  numbers_.clear();
  stores_.clear();
}

void WaitingStores::Add(const std::shared_ptr<Store>& store) {
  absl::MutexLock lock(&mutex_);
  if (state_ != State::kOpen) return;
  const bool is_new = stores_.insert_or_assign(store->number(), store).second;
  if (is_new) numbers_.push_back(store->number());
}

std::shared_ptr<Store> WaitingStores::Take() {
  absl::MutexLock lock(&mutex_);
  for (;;) {
    mutex_.Await(absl::Condition(this, &WaitingStores::HasNews));
    if (state_ == State::kClosed) return nullptr;
    const auto found = stores_.find(numbers_.front());
    SOFTLOOKUP_CHECK(found != stores_.end()) << "store " << numbers_.front() << " is lost";
    std::shared_ptr<Store> store = found->second.lock();
    stores_.erase(found);
    numbers_.pop_front();
    if (store != nullptr) return store;
  }
}

}  // namespace softlookup
