#ifndef SOFTLOOKUP_SERVER_RPC_REFLECTION_H_
#define SOFTLOOKUP_SERVER_RPC_REFLECTION_H_

#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/rpc/call.h"
#include "server/rpc/stream_call.h"

namespace softlookup::server {

// Answers a question of gRPC's tools about the server's services and messages.
grpc::reflection::v1alpha::ServerReflectionResponse Reflect(
    const grpc::reflection::v1alpha::ServerReflectionRequest& request);

// One ServerReflectionInfo call: reads a request, writes its answer, reads the next.
class ReflectionStream final : public StreamCall<ReflectionStream> {
 public:
  static void Start(std::unique_ptr<Call> call);

  // Does nothing: when a call is cancelled, its read or write in progress fails, and that ends the
  // stream.
  void OnCancel() override {}
  void Drain() override;
  void Recheck() override;

 private:
  explicit ReflectionStream(std::unique_ptr<Call> call) : StreamCall(std::move(call)) {}

  void OnRead(bool ok) override;
  void OnWritten(bool ok) override;
  // Parses the message that was read, and writes its answer.
  void Answer();
  // Ends the call with `status` once no write is in progress. Only the first call counts.
  void End(const absl::Status& status);
  // Ends the call with `end_`, unless it has ended before.
  void Finish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);  // The status to end the call with.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_REFLECTION_H_
