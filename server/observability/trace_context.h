#ifndef SOFTLOOKUP_SERVER_OBSERVABILITY_TRACE_CONTEXT_H_
#define SOFTLOOKUP_SERVER_OBSERVABILITY_TRACE_CONTEXT_H_

#include <grpcpp/grpcpp.h>

#include "absl/strings/string_view.h"

namespace softlookup::server {

// The trace id, 32 lowercase hexadecimal digits, of a `traceparent` header as W3C Trace Context
// defines it: part of `header`, or empty if that is anything else.
absl::string_view TraceIdIn(absl::string_view header);

// That of the caller, part of the context; empty if they sent none, or several.
absl::string_view TraceIdOf(const grpc::ServerContextBase& context);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OBSERVABILITY_TRACE_CONTEXT_H_
