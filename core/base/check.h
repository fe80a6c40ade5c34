#ifndef SOFTLOOKUP_CORE_BASE_CHECK_H_
#define SOFTLOOKUP_CORE_BASE_CHECK_H_

#include <sstream>

// Assertions. A failed check prints its file, line, condition and streamed message, then aborts the
// process:
//
//   SOFTLOOKUP_CHECK(revision == last + 1) << "revision " << revision << " after " << last;
//
// SOFTLOOKUP_CHECK is always on. It guards against corrupt stores and wrong answers.
// SOFTLOOKUP_DCHECK is on only in Debug builds, which include the sanitizer builds. It is for
// checks that would slow lookups down. Other builds compile the condition but do not evaluate it.

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

  // Its operator& turns a stream into void, which is also the type of the macro's other branch.
  struct Swallow {
    void operator&(std::ostream&) const {}
  };

 private:
  std::ostringstream message_;
};

}  // namespace softlookup::internal

#endif  // SOFTLOOKUP_CORE_BASE_CHECK_H_
