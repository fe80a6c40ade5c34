#ifndef SOFTLOOKUP_CLIENT_LOADTEST_CALL_SLOT_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_CALL_SLOT_H_

#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "client/loadtest/connections.h"
#include "client/loadtest/evidence.h"
#include "client/loadtest/load_options.h"
#include "client/loadtest/recorder.h"
#include "client/loadtest/traffic.h"
#include "softlookup/client.h"

namespace softlookup::loadtest {

class CallSlot;

// Who is told that a slot's call has ended, on one of gRPC's threads. It may start the next one.
class CallOwner {
 public:
  virtual void Ended(CallSlot* slot, const grpc::Status& status) = 0;

 protected:
  ~CallOwner() = default;
};

// What all calls of a run share.
struct CallSetup {
  const Connections* connections = nullptr;
  Recorder* recorder = nullptr;
  Evidence* evidence = nullptr;  // May be null.
  absl::Duration timeout = absl::Seconds(10);
  RetryOptions retry;
  std::string writer_prefix;      // Appends that may be retried are of writers of this prefix.
  std::atomic<bool> stop{false};  // No call, and no attempt, is begun any more.
};

// The place of one call at a time, made with gRPC's callback API: whoever starts it does not wait.
class CallSlot {
 public:
  // Neither `setup` nor `owner` may go before the slot. `index` is the slot's among all of a run.
  CallSlot(CallSetup* setup, CallOwner* owner, int index);
  CallSlot(const CallSlot&) = delete;
  CallSlot& operator=(const CallSlot&) = delete;

  // `due` is when the latency counts from. The slot must be free.
  void Start(const PreparedRequest& request, Clock::time_point due);

  // The same after a while: what a closed loop does when nobody answers.
  void StartAfter(absl::Duration delay, const PreparedRequest& request);

  // Gives up the call, if there is one, once CallSetup::stop is set. Any thread.
  void Cancel();

  CallSlot* next_free = nullptr;  // Its owner's.

 private:
  void Attempt();
  void Answered(const grpc::Status& status);
  bool Retry(const grpc::Status& status, Clock::time_point now);
  void Finish(const grpc::Status& status, Clock::time_point now);
  void AddWriter();

  // Before a call or an alarm is begun, and where it has ended. gRPC orders the two; this shows it
  // to ThreadSanitizer, which does not see it in a gRPC that is not built for it. Between
  // HandOver() and the beginning no member is read: the call may end, and the next one start, at
  // once.
  void HandOver() { handed_over_.store(true, std::memory_order_release); }
  void TakeBack() { static_cast<void>(handed_over_.load(std::memory_order_acquire)); }

  CallSetup* const setup_;
  CallOwner* const owner_;
  grpc::GenericStub& stub_;
  const std::string writer_;
  std::uint64_t sequence_ = 0;

  const PreparedRequest* request_ = nullptr;
  grpc::ByteBuffer written_;  // The request with its writer, where there is one.
  Clock::time_point due_;
  std::uint64_t rows_seen_ = 0;  // Evidence's, when the call began.
  absl::Time deadline_;
  int attempts_made_ = 0;
  std::atomic<bool> preparing_ = false;  // The context is being made.
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> handed_over_ = false;  // See HandOver().
  std::optional<grpc::ClientContext> context_;
  std::optional<grpc::Alarm> alarm_;
  grpc::ByteBuffer answer_;
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_CALL_SLOT_H_
