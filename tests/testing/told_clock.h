#ifndef SOFTLOOKUP_TESTS_TESTING_TOLD_CLOCK_H_
#define SOFTLOOKUP_TESTS_TESTING_TOLD_CLOCK_H_

#include <atomic>
#include <cstdint>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/clock.h"

namespace softlookup::testing {

// A clock that stands still until it is told to go on.
class ToldClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::UnixEpoch() + absl::Nanoseconds(now_.load()); }

  void AwaitUntil(absl::Mutex& mutex, const absl::Condition& condition,
                  absl::Time deadline) const override {
    const auto is_over = [&] { return condition.Eval() || Now() >= deadline; };
    {
      absl::MutexLock lock(&mutex_);
      waiting_.insert(&mutex);
      ++wait_count_;
    }
    mutex.Await(absl::Condition(&is_over));
    absl::MutexLock lock(&mutex_);
    waiting_.erase(waiting_.find(&mutex));
  }

  // Goes on, and wakes those whose deadline has come.
  void Advance(absl::Duration time) {
    now_ += absl::ToInt64Nanoseconds(time);
    std::multiset<absl::Mutex*> waiting;
    {
      absl::MutexLock lock(&mutex_);
      waiting = waiting_;
    }
    // Conditions are evaluated when their mutex is unlocked.
    for (absl::Mutex* const mutex : waiting) absl::MutexLock lock(mutex);
  }

  // Returns once `count` calls of AwaitUntil have begun since the clock was made.
  void AwaitWaits(int count) const {
    const auto have_begun = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return wait_count_ >= count;
    };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&have_begun));
  }

 private:
  std::atomic<std::int64_t> now_{0};  // Nanoseconds.
  mutable absl::Mutex mutex_;
  mutable std::multiset<absl::Mutex*> waiting_ ABSL_GUARDED_BY(mutex_);
  mutable int wait_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_TOLD_CLOCK_H_
