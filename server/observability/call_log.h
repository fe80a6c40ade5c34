#ifndef SOFTLOOKUP_SERVER_OBSERVABILITY_CALL_LOG_H_
#define SOFTLOOKUP_SERVER_OBSERVABILITY_CALL_LOG_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/method.h"
#include "server/observability/line_limiter.h"
#include "softlookup/engine.h"
#include "softlookup/v1/lookup.pb.h"

namespace softlookup::server {

// What is logged about a call.
struct CallInfo {
  Method method;
  grpc::ServerContextBase& context;
  absl::string_view peer;           // The client's address, as gRPC names it.
  absl::string_view identity = {};  // The caller's name; empty if not identified.
};

// What is logged about a slow lookup.
struct LookupFacts {
  const v1::LookupRequest& request;
  // The store's name. A later request of a stream may leave it out of `request`.
  absl::string_view store;
  const LookupResult* result = nullptr;  // Null if the lookup failed.
  const LookupReport& report;
};

// Writes the server log's lines about calls, at most ten a second of each kind. Thread-safe.
class CallLog {
 public:
  // Logs how many lines of each kind were left out since the last line of that kind.
  ~CallLog();

  // Logs a call that was answered with `status`, if that is a failure of the server or its disk, or
  // if the stores have reached --memory-limit. Otherwise does nothing.
  void LogFailure(const CallInfo& call, absl::Duration duration, const absl::Status& status);
  // Logs a lookup that was slow.
  void LogSlowLookup(const CallInfo& call, absl::Duration duration, const absl::Status& status,
                     const LookupFacts& facts);

 private:
  static constexpr std::int64_t kLinesPerSecondMax = 10;  // For each kind of line but the next.
  // A client that appends goes on to try, and one line says what all would say.
  static constexpr std::int64_t kMemoryLinesPerSecondMax = 1;

  LineLimiter failure_lines_{kLinesPerSecondMax};
  LineLimiter memory_lines_{kMemoryLinesPerSecondMax};
  LineLimiter slow_lookup_lines_{kLinesPerSecondMax};
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OBSERVABILITY_CALL_LOG_H_
