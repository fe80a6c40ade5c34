#ifndef SOFTLOOKUP_SERVER_BASE_EVENT_ORDER_H_
#define SOFTLOOKUP_SERVER_BASE_EVENT_ORDER_H_

#include "absl/base/config.h"
#ifdef ABSL_HAVE_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace softlookup::server {

// The callbacks of a call in gRPC's callback API come one after another, OnDone() last, and each
// after the start of the operation that it ends. ThreadSanitizer does not see all of this order,
// because Debian's gRPC is not built for it. To tell ThreadSanitizer, call BeforeEvent() before an
// operation is started, and once a callback has written what a later one reads. Call InEvent()
// first in each callback. Both do nothing in other builds. `operation` is any address that these
// calls share. Of operations that end with an event of a completion queue,
// tests/testing/tsan_grpc.cc tells ThreadSanitizer.
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
