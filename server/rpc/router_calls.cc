#include "server/rpc/router_calls.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/error.h"
#include "server/rpc/status.h"

namespace softlookup::server {
namespace {

// How long calls that are being refused may take to get their answers. gRPC cuts them otherwise,
// and a router cannot tell whether what they asked for was done.
constexpr absl::Duration kGoodbye = absl::Milliseconds(500);

// A call that ends with an error before any message is read. Deletes itself.
class EndedCall final : public Rpc::Handler {
 public:
  static void Start(Rpc& rpc, const absl::Status& status) {
    rpc.Attach(*new EndedCall);
    rpc.Finish(ToGrpcStatus(status, rpc.context()));
  }
  void OnDone() override { delete this; }
};

}  // namespace

void RouterCalls::Serve(RpcServer::Accept accept) {
  accept_ = std::move(accept);
  state_.store(State::kServing, std::memory_order_release);
}

void RouterCalls::Stop() {
  Refuse();
  rpcs_.Shutdown(absl::Now() + kGoodbye);
  rpcs_.Wait();
}

void RouterCalls::Begin(Rpc& rpc) {
  switch (state_.load(std::memory_order_acquire)) {
    case State::kLoading:
      return EndedCall::Start(
          rpc,
          WithRetryAfter(MakeError(reasons::kLoading, "The server is still loading its stores"),
                         absl::Seconds(1)));
    case State::kServing:
      return accept_(rpc);
    case State::kRefusing:
      return EndedCall::Start(rpc, ShuttingDown());
  }
}

}  // namespace softlookup::server
