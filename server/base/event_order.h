#ifndef SOFTLOOKUP_SERVER_BASE_EVENT_ORDER_H_
#define SOFTLOOKUP_SERVER_BASE_EVENT_ORDER_H_

#include "absl/base/config.h"
#ifdef ABSL_HAVE_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace softlookup::server {

// The event that ends an operation reads data that was written before the operation was started.
// gRPC orders the two, but ThreadSanitizer does not see this order, because Debian's gRPC is not
// built for ThreadSanitizer. To tell ThreadSanitizer, call BeforeEvent() before the start, and
// InEvent() first in the event. Both do nothing in other builds. `operation` is any address that
// the start and the event of an operation share.
inline void BeforeEvent([[maybe_unused]] void* operation) {
#ifdef ABSL_HAVE_THREAD_SANITIZER
  __tsan_release(operation);
#endif
}
inline void InEvent([[maybe_unused]] void* operation) {
#ifdef ABSL_HAVE_THREAD_SANITIZER
  __tsan_acquire(operation);
#endif
}

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_BASE_EVENT_ORDER_H_
