#ifndef SOFTLOOKUP_CORE_BASE_CHECK_H_
#define SOFTLOOKUP_CORE_BASE_CHECK_H_

#include <sstream>

// Assertions. A failed one prints its file and line, the condition and what was streamed into it,
// and aborts the process:
//
//   SOFTLOOKUP_CHECK(revision == last + 1) << "revision " << revision << " after " << last;
//
// SOFTLOOKUP_CHECK is always on. It guards data: what it would let pass corrupts a store or gives a
// wrong answer. SOFTLOOKUP_DCHECK is on in builds of the type Debug, which the sanitizers' are. It
// stands where a check would take time that a lookup notices; elsewhere its condition is compiled
// but not evaluated.

#define SOFTLOOKUP_CHECK(condition)                               \
  (condition) ? static_cast<void>(0)                              \
              : ::softlookup::internal::CheckFailure::Swallow() & \
                    ::softlookup::internal::CheckFailure(__FILE__, __LINE__, #condition).stream()

#ifdef SOFTLOOKUP_DCHECKS
#define SOFTLOOKUP_DCHECK(condition) SOFTLOOKUP_CHECK(condition)
#else
#define SOFTLOOKUP_DCHECK(condition) SOFTLOOKUP_CHECK(true || (condition))
#endif

namespace softlookup::internal {

// Collects the message of a failed check. Its destructor aborts.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;

  std::ostream& stream() { return message_; }

  // Makes both branches of the macro's conditional void.
  struct Swallow {
    void operator&(std::ostream&) const {}
  };

 private:
  std::ostringstream message_;
};

}  // namespace softlookup::internal

#endif  // SOFTLOOKUP_CORE_BASE_CHECK_H_
