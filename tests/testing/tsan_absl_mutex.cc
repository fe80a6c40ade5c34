// Part of every program that is built for tsan. Debian's Abseil is not built for it, so tsan sees
// neither what absl::Mutex and Notification order nor that the conditions of Await, which any
// thread that unlocks may evaluate, are read under the mutex. These definitions stand before the
// library's, tell tsan, and call the library's. "debian3" in their names is the inline namespace of
// Debian 12's Abseil.
#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "tests/testing/library_function.h"

extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

namespace {

using ::softlookup::testing::LibraryFunction;

struct IgnoreConditions {
  IgnoreConditions() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
  ~IgnoreConditions() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
};

// For the time of a wait, in which others lock `mutex`.
class WhileUnlocked {
 public:
  explicit WhileUnlocked(absl::Mutex* mutex) : mutex_(mutex) { __tsan_release(mutex_); }
  ~WhileUnlocked() { __tsan_acquire(mutex_); }

 private:
  absl::Mutex* const mutex_;
  const IgnoreConditions ignore_;
};

// Calls a member that locks, unlocks, or (waiting) does both.
template <bool kUnlocks, bool kLocks, typename Result, typename... Arguments>
Result Call(Result (*member)(absl::Mutex*, Arguments...), absl::Mutex* mutex,
            Arguments... arguments) {
  struct AcquireAtEnd {
    absl::Mutex* mutex;
    ~AcquireAtEnd() {
      if (kLocks) __tsan_acquire(mutex);
    }
  };
  if (kUnlocks) __tsan_release(mutex);
  const AcquireAtEnd acquire{mutex};
  const IgnoreConditions ignore;
  return member(mutex, arguments...);
}

using Plain = void (*)(absl::Mutex*);
using When = void (*)(absl::Mutex*, const absl::Condition&);

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  static const auto member = LibraryFunction<Plain>("_ZN4absl7debian35Mutex4LockEv");
  Call<false, true>(member, this);
}

void Mutex::Unlock() {
  static const auto member = LibraryFunction<Plain>("_ZN4absl7debian35Mutex6UnlockEv");
  Call<true, false>(member, this);
}

void Mutex::ReaderLock() {
  static const auto member = LibraryFunction<Plain>("_ZN4absl7debian35Mutex10ReaderLockEv");
  Call<false, true>(member, this);
}

void Mutex::ReaderUnlock() {
  static const auto member = LibraryFunction<Plain>("_ZN4absl7debian35Mutex12ReaderUnlockEv");
  Call<true, false>(member, this);
}

void Mutex::LockWhen(const Condition& condition) {
  static const auto member =
      LibraryFunction<When>("_ZN4absl7debian35Mutex8LockWhenERKNS0_9ConditionE");
  Call<false, true, void, const Condition&>(member, this, condition);
}

void Mutex::Await(const Condition& condition) {
  static const auto member =
      LibraryFunction<When>("_ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE");
  Call<true, true, void, const Condition&>(member, this, condition);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static const auto member = LibraryFunction<bool (*)(Mutex*, const Condition&, Duration)>(
      "_ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  return Call<true, true, bool, const Condition&, Duration>(member, this, condition, timeout);
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  static const auto member = LibraryFunction<bool (*)(Mutex*, const Condition&, Time)>(
      "_ZN4absl7debian35Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  return Call<true, true, bool, const Condition&, Time>(member, this, condition, deadline);
}

bool Mutex::TryLock() {
  static const auto member = LibraryFunction<bool (*)(Mutex*)>("_ZN4absl7debian35Mutex7TryLockEv");
  const IgnoreConditions ignore;
  const bool is_locked = member(this);
  if (is_locked) __tsan_acquire(this);
  return is_locked;
}

void CondVar::Wait(Mutex* mutex) {
  static const auto member =
      LibraryFunction<void (*)(CondVar*, Mutex*)>("_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE");
  const WhileUnlocked unlocked(mutex);
  member(this, mutex);
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  static const auto member = LibraryFunction<bool (*)(CondVar*, Mutex*, Duration)>(
      "_ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  const WhileUnlocked unlocked(mutex);
  return member(this, mutex, timeout);
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  static const auto member = LibraryFunction<bool (*)(CondVar*, Mutex*, Time)>(
      "_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  const WhileUnlocked unlocked(mutex);
  return member(this, mutex, deadline);
}

void Notification::Notify() {
  static const auto member =
      LibraryFunction<void (*)(Notification*)>("_ZN4absl7debian312Notification6NotifyEv");
  __tsan_release(this);
  member(this);
}

void Notification::WaitForNotification() const {
  static const auto member = LibraryFunction<void (*)(const Notification*)>(
      "_ZNK4absl7debian312Notification19WaitForNotificationEv");
  member(this);
  __tsan_acquire(const_cast<Notification*>(this));
}

ABSL_NAMESPACE_END
}  // namespace absl
