#ifndef SOFTLOOKUP_SERVER_RPC_HEALTH_H_
#define SOFTLOOKUP_SERVER_RPC_HEALTH_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpc/health/v1/health.pb.h"
#include "server/rpc/call.h"
#include "server/rpc/status.h"
#include "server/rpc/stream_call.h"
#include "server/rpc/weak_list.h"

namespace softlookup::server {

class HealthWatch;

// Whether the server takes calls: what grpc.health.v1, /readyz and /metrics report. Any client may
// ask for it through grpc.health.v1. Thread-safe.
class Health {
 public:
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;

  // Sets whether the server takes calls, and notifies the clients that watch. Initially, it takes
  // none.
  void SetServing(bool serving);
  bool is_serving() const {
    absl::MutexLock lock(&mutex_);
    return serving_;
  }
  // Returns the status of `service`: "" for the server as a whole, or softlookup.v1.SoftLookup.
  // Returns SERVICE_UNKNOWN for any other `service`.
  Status StatusOf(const std::string& service) const;

 private:
  friend class HealthWatch;

  void Add(const std::shared_ptr<HealthWatch>& watch);

  mutable absl::Mutex mutex_;
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;
  WeakList<HealthWatch> watches_ ABSL_GUARDED_BY(mutex_);
};

// Starts a Check call.
void StartHealthCheck(std::unique_ptr<Call> call, Health& health);

// One Watch call: sends the status at once, and again after changes.
class HealthWatch final : public StreamCall<HealthWatch> {
 public:
  static void Start(std::unique_ptr<Call> call, Health& health);

  void OnCancel() override { End(absl::CancelledError("The caller is gone")); }
  void Drain() override { End(ShuttingDown()); }
  // Does nothing: any client may watch.
  void Recheck() override {}

  // Call this when the status may have changed. Sends the status if it is not the one sent last.
  // After End(), ends the call instead. While a read or a write is in progress, does nothing: its
  // end calls this again.
  void Proceed();

 private:
  HealthWatch(std::unique_ptr<Call> call, Health& health)
      : StreamCall(std::move(call)), health_(health) {}

  void OnRead(bool ok) override;
  void OnWritten(bool ok) override;
  // Begins to watch `service`. If `status` is an error, ends the RPC with it instead.
  void Open(const absl::Status& status, const std::string& service);
  // Ends the RPC with `status`, an error, once no read or write is in progress. Only the first
  // error counts.
  void End(const absl::Status& status);

  Health& health_;

  absl::Mutex mutex_;
  std::string service_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = true;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  int sent_ ABSL_GUARDED_BY(mutex_) = -1;     // The last status sent; -1: none yet.
  absl::Status end_ ABSL_GUARDED_BY(mutex_);  // Not OK: the call is to end with it.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_HEALTH_H_
