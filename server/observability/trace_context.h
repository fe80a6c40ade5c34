#ifndef SOFTLOOKUP_SERVER_OBSERVABILITY_TRACE_CONTEXT_H_
#define SOFTLOOKUP_SERVER_OBSERVABILITY_TRACE_CONTEXT_H_

#include <grpcpp/grpcpp.h>

#include "absl/strings/string_view.h"

namespace softlookup::server {

// Returns the trace id in `header`, the value of a `traceparent` header as W3C Trace Context
// defines it. The id is 32 lowercase hexadecimal digits, as a view into `header`. Empty if `header`
// is malformed.
absl::string_view TraceIdIn(absl::string_view header);

// Returns the trace id that the caller sent, as a view into `context`. Empty if it sent no
// traceparent header, several of them, or a malformed one.
absl::string_view TraceIdOf(const grpc::ServerContextBase& context);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OBSERVABILITY_TRACE_CONTEXT_H_
