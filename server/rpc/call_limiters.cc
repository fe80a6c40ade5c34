#include "server/rpc/call_limiters.h"

namespace softlookup::server {
namespace {

// Does not depend on the number of processors, because workers spend more time waiting for the disk
// than computing.
constexpr int kWorkerCount = 4;
// Maximum number of tasks that wait for a worker, of all callers and of one caller. Tasks of
// streams may exceed it (Workers::PostNext()).
constexpr std::size_t kTasksMax = 1024;
constexpr std::size_t kTasksOfCallerMax = 128;

}  // namespace

CallLimiters::CallLimiters(const CallLimits& limits)
    : limits(limits),
      connections(limits.calls_per_connection_max),
      tenants(limits.tenant_rates),
      messages(limits.engine, limits.request_bytes_max),
      arrivals(limits.receive_timeout, "the client has not sent its message"),
      stalls(limits.stall_timeout, "the client has not taken a message"),
      workers(kWorkerCount, kTasksMax, kTasksOfCallerMax) {}

}  // namespace softlookup::server
