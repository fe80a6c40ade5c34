#ifndef SOFTLOOKUP_SERVER_RPC_WATCH_STREAM_H_
#define SOFTLOOKUP_SERVER_RPC_WATCH_STREAM_H_

#include <grpcpp/alarm.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/cancellation.h"
#include "server/rpc/call.h"
#include "server/rpc/stream_call.h"
#include "softlookup/engine.h"
#include "softlookup/v1/memory.pb.h"

namespace softlookup::server {

// One WatchMemory call. It writes the memory, waits for a change, waits for the interval, and
// writes again. One of these steps is in progress at a time.
class WatchStream final : public StreamCall<WatchStream> {
 public:
  static void Start(std::unique_ptr<Call> call, Engine& engine);

  void OnCancel() override { End(absl::CancelledError("The caller cancelled the call")); }
  void Drain() override;
  void Recheck() override;

 private:
  WatchStream(std::unique_ptr<Call> call, Engine& engine)
      : StreamCall(std::move(call)), engine_(engine) {}

  void OnRead(bool ok) override;
  void OnWritten(bool ok) override;
  // Parses the request, checks that the caller may read its store, and keeps its fields.
  absl::Status Open();
  void Finish(const absl::Status& status) { call().rpc().Finish(call().reporter().Answer(status)); }
  // Writes the memory if it has changed, else waits for a change. Ends the call if the memory
  // cannot be read.
  void Send();
  // Waits for the store's next revision, then calls WaitForInterval(). Ends the call if the wait
  // fails.
  void WaitForChange();
  // Calls Send() on a thread of gRPC's once the interval since the last message is over. Ends the
  // call if End() was called.
  void WaitForInterval();
  // Makes the call end with `status`. For that, ends the wait in progress, or the next wait as soon
  // as it begins. Only the first `status` counts.
  void End(const absl::Status& status);

  Engine& engine_;
  std::string store_;
  std::string name_;         // Of the memory.
  absl::Duration interval_;  // Shortest time between two messages.
  const std::shared_ptr<CancelToken> cancel_ = std::make_shared<CancelToken>();

  // Used by the step in progress only.
  std::optional<std::uint64_t> incarnation_;  // Of the watched store.
  std::uint64_t revision_ = 0;                // The last revision seen.
  std::optional<std::uint64_t> end_;          // MemoryState::end of the memory last sent.
  absl::Time sent_ = absl::InfinitePast();    // When the last message was passed to gRPC.

  absl::Mutex mutex_;
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mutex_);
  absl::Status end_status_ ABSL_GUARDED_BY(mutex_);  // Not OK: the call is to end with it.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_WATCH_STREAM_H_
