#include "server/call_transport.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <thread>

namespace softlookup::server {
namespace {

// A message that exceeds the limit on messages by at most this many bytes gets the server's own
// error, with details. gRPC itself refuses larger ones.
constexpr std::int64_t kMessageSlack = std::int64_t{4} << 20;

// gRPC has one thread at a time wait for all connections. For each event, this thread wakes another
// one to wait in its place. So two threads cost a router, which only passes bytes on, more than
// they add, unless there are cores for them beside the kernel's work.
int ThreadCountFor(bool is_router) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return is_router ? std::clamp(cores / 2, 1, 16) : std::clamp(cores, 2, 16);
}

}  // namespace

CallTransport CallTransportOf(const Flags& flags) {
  constexpr std::int64_t kGrpcMax = std::numeric_limits<int>::max();
  return {.message_bytes_max =
              static_cast<int>(std::min(flags.limits.message_bytes_max + kMessageSlack, kGrpcMax)),
          .bytes_max = static_cast<std::size_t>(2 * flags.request_bytes_max),
          .thread_count = ThreadCountFor(flags.router)};
}

}  // namespace softlookup::server
