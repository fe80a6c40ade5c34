#ifndef SOFTLOOKUP_SERVER_RPC_WATCH_STREAM_H_
#define SOFTLOOKUP_SERVER_RPC_WATCH_STREAM_H_

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/cancellation.h"
#include "server/limits/stall_watch.h"
#include "server/rpc/call.h"
#include "softlookup/engine.h"
#include "softlookup/v1/memory.pb.h"

namespace softlookup::server {

// One WatchMemory call: write, wait for a change, wait for the interval, write again. One of the
// three is under way at a time.
//
// It owns itself until the call is over; a callback that is still running then shares it.
class WatchStream final : public Rpc::Handler,
                          public Stream,
                          public std::enable_shared_from_this<WatchStream> {
 public:
  static void Start(std::unique_ptr<Call> call, Engine& engine);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { End(absl::CancelledError("The caller cancelled the call")); }
  void OnDone() override {
    arrival_.End();
    writes_.End();
    self_.reset();
  }
  void Drain() override;
  void Recheck() override;

 private:
  WatchStream(std::unique_ptr<Call> call, Engine& engine)
      : call_(std::move(call)),
        engine_(engine),
        arrival_(call_->tracker().arrivals(), call_->rpc().context()),
        writes_(call_->tracker().stalls(), call_->rpc().context()) {}

  // Makes the request of what was read, and sends the memory for the first time.
  absl::Status Open();
  void Finish(const absl::Status& status) { call_->rpc().Finish(call_->Answer(status)); }
  // Writes the memory if it has changed, else waits for a change.
  void Send();
  void WaitForChange();
  // Sends when the interval since the last message is over, on a thread of gRPC's.
  void WaitForInterval();
  // Has whatever is under way end, and the call with `status`.
  void End(const absl::Status& status);

  std::shared_ptr<WatchStream> self_;
  const std::unique_ptr<Call> call_;
  Engine& engine_;
  StallWatch::Waits arrival_;
  StallWatch::Waits writes_;
  grpc::ByteBuffer bytes_;
  std::string store_;
  std::string name_;
  absl::Duration interval_;
  const std::shared_ptr<CancelToken> cancel_ = std::make_shared<CancelToken>();

  // Of the step under way.
  std::optional<std::uint64_t> incarnation_;  // Of the store that is watched.
  std::uint64_t revision_ = 0;                // Last seen.
  std::optional<std::uint64_t> end_;          // Of the memory last sent.
  absl::Time sent_ = absl::InfinitePast();

  absl::Mutex mutex_;
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mutex_);
  absl::Status end_status_ ABSL_GUARDED_BY(mutex_);  // Not OK: the call is to end.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_WATCH_STREAM_H_
