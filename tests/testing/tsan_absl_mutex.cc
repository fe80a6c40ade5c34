// Part of every test that is built for tsan. Debian's Abseil is not built for it, so tsan sees
// neither what absl::Mutex orders nor that the conditions of Await, which any thread that unlocks may
// evaluate, are read under the mutex. These definitions stand before the library's, tell tsan, and
// call the library's.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <cstdio>
#include <cstdlib>

#include "absl/synchronization/mutex.h"

extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

namespace {

// A member of absl::Mutex as the library has it. `suffix` is its mangled name after the class.
template <typename Function>
Function LibraryMember(const char* suffix) {
  char name[256];
  // "debian3" is the inline namespace of Debian 12's Abseil.
  std::snprintf(name, sizeof(name), "_ZN4absl7debian35Mutex%s", suffix);
  void* const symbol = dlsym(RTLD_NEXT, name);
  if (symbol == nullptr) {
    std::fprintf(stderr, "tsan_absl_mutex: no %s in the library\n", name);
    std::abort();
  }
  return reinterpret_cast<Function>(symbol);
}

struct IgnoreConditions {
  IgnoreConditions() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
  ~IgnoreConditions() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
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
  static const auto member = LibraryMember<Plain>("4LockEv");
  Call<false, true>(member, this);
}

void Mutex::Unlock() {
  static const auto member = LibraryMember<Plain>("6UnlockEv");
  Call<true, false>(member, this);
}

void Mutex::ReaderLock() {
  static const auto member = LibraryMember<Plain>("10ReaderLockEv");
  Call<false, true>(member, this);
}

void Mutex::ReaderUnlock() {
  static const auto member = LibraryMember<Plain>("12ReaderUnlockEv");
  Call<true, false>(member, this);
}

void Mutex::LockWhen(const Condition& condition) {
  static const auto member = LibraryMember<When>("8LockWhenERKNS0_9ConditionE");
  Call<false, true, void, const Condition&>(member, this, condition);
}

void Mutex::Await(const Condition& condition) {
  static const auto member = LibraryMember<When>("5AwaitERKNS0_9ConditionE");
  Call<true, true, void, const Condition&>(member, this, condition);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static const auto member = LibraryMember<bool (*)(Mutex*, const Condition&, Duration)>(
      "16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  return Call<true, true, bool, const Condition&, Duration>(member, this, condition, timeout);
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  static const auto member = LibraryMember<bool (*)(Mutex*, const Condition&, Time)>(
      "17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  return Call<true, true, bool, const Condition&, Time>(member, this, condition, deadline);
}

ABSL_NAMESPACE_END
}  // namespace absl
