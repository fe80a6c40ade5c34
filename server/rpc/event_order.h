#ifndef SOFTLOOKUP_SERVER_RPC_EVENT_ORDER_H_
#define SOFTLOOKUP_SERVER_RPC_EVENT_ORDER_H_

#include "absl/base/config.h"
#ifdef ABSL_HAVE_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace softlookup::server {

// What was written before an operation was started is read in the event that ends it. gRPC orders
// the two, which ThreadSanitizer does not see: Debian's gRPC is not built for it. These tell it,
// and are nothing in any other build. `operation` stands for both sides: an address that they know.
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

#endif  // SOFTLOOKUP_SERVER_RPC_EVENT_ORDER_H_
