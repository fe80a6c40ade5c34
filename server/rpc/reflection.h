#ifndef SOFTLOOKUP_SERVER_RPC_REFLECTION_H_
#define SOFTLOOKUP_SERVER_RPC_REFLECTION_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/limits/stall_watch.h"
#include "server/rpc/call.h"

namespace softlookup::server {

// Answers a question of gRPC's tools about the server's services and messages.
grpc::reflection::v1alpha::ServerReflectionResponse Reflect(
    const grpc::reflection::v1alpha::ServerReflectionRequest& request);

// One ServerReflectionInfo call: reads a request, writes its answer, reads the next. It owns itself
// until the call is over.
class ReflectionStream final : public Rpc::Handler,
                               public DrainableStream,
                               public std::enable_shared_from_this<ReflectionStream> {
 public:
  static void Start(std::unique_ptr<Call> call);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  // Does nothing: when a call is cancelled, its read or write in progress fails, and that ends the
  // stream.
  void OnCancel() override {}
  void OnDone() override {
    arrival_.End();
    writes_.End();
    self_.reset();
  }
  void Drain() override;
  void Recheck() override;

 private:
  explicit ReflectionStream(std::unique_ptr<Call> call)
      : call_(std::move(call)),
        arrival_(call_->limiters().arrivals, call_->rpc().context()),
        writes_(call_->limiters().stalls, call_->rpc().context()) {}

  // Ends the call with `status` once no write is in progress. Only the first call counts.
  void End(const absl::Status& status);
  // Ends the call with `end_`, unless it has ended before.
  void Finish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::shared_ptr<ReflectionStream> self_;
  const std::unique_ptr<Call> call_;
  StallWatch::Waits arrival_;  // The wait for the first message.
  StallWatch::Waits writes_;   // The waits until the client takes an answer.
  grpc::ByteBuffer bytes_;

  absl::Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);  // The status to end the call with.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_REFLECTION_H_
