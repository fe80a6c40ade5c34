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

// Receives the end of each call of a slot.
class CallOwner {
 public:
  // Called when the slot's call has ended: on one of gRPC's threads, or inside CallSlot::Start() if
  // CallSetup::stop is set. May start the slot's next call.
  virtual void Ended(CallSlot* slot, const grpc::Status& status) = 0;

 protected:
  ~CallOwner() = default;
};

// The objects and settings that all calls of a run share.
struct CallSetup {
  const Connections* connections = nullptr;
  Recorder* recorder = nullptr;
  Evidence* evidence = nullptr;                // May be null.
  absl::Duration timeout = absl::Seconds(10);  // Of a call, all its attempts together.
  RetryOptions retry;
  // Slot i appends as the writer whose name is this prefix and i. If the prefix is empty, appends
  // have no writer. Then they must not be retried: without a writer, the server may apply a retried
  // append twice.
  std::string writer_prefix;
  std::atomic<bool> stop{false};  // Once it is set, no call and no attempt begins.
};

// Makes one call at a time with gRPC's callback API. No method waits for the answer to a call.
class CallSlot {
 public:
  // `setup` and `owner` must outlive the slot. `index` is the slot's number among all of a run.
  CallSlot(CallSetup* setup, CallOwner* owner, int index);
  CallSlot(const CallSlot&) = delete;
  CallSlot& operator=(const CallSlot&) = delete;

  // Starts a call that sends `request`. The call's latency counts from `due`. The slot must have no
  // call in progress. `request` must stay valid until the call has ended.
  void Start(const PreparedRequest& request, Clock::time_point due);

  // Starts a call after `delay`, and returns at once. The call's latency does not include the
  // delay. A closed loop uses this when it cannot reach the server.
  void StartAfter(absl::Duration delay, const PreparedRequest& request);

  // Gives up the slot's call if it has one. CallSetup::stop must be set. Any thread may call this.
  void Cancel();

  CallSlot* next_free = nullptr;  // For the owner's list of free slots.

 private:
  void Attempt();
  void Answered(const grpc::Status& status);
  bool Retry(const grpc::Status& status, Clock::time_point now);
  void Finish(const grpc::Status& status, Clock::time_point now);
  void AddWriter();

  // A slot's members pass from the thread that starts a call or an alarm to the thread that runs
  // its callback. HandOver() must be called before that start, and TakeBack() first in the
  // callback. gRPC already orders the two threads. But ThreadSanitizer cannot see that order in a
  // gRPC that was built without it, so these two methods show the order to it. After HandOver(),
  // the thread that called it must read no member: the call may already have ended, and the next
  // one have begun.
  void HandOver() { handed_over_.store(true, std::memory_order_release); }
  void TakeBack() { static_cast<void>(handed_over_.load(std::memory_order_acquire)); }

  CallSetup* const setup_;
  CallOwner* const owner_;
  grpc::GenericStub& stub_;
  const std::string writer_;
  std::uint64_t sequence_ = 0;

  const PreparedRequest* request_ = nullptr;
  grpc::ByteBuffer written_;  // An append's bytes with writer and sequence, if it has them.
  Clock::time_point due_;
  std::uint64_t rows_seen_ = 0;  // Evidence::RowsSeen() before the call began.
  absl::Time deadline_;
  int attempts_made_ = 0;
  std::atomic<bool> preparing_ = false;  // Attempt() is making the context.
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> handed_over_ = false;  // See HandOver().
  std::optional<grpc::ClientContext> context_;
  std::optional<grpc::Alarm> alarm_;
  grpc::ByteBuffer answer_;
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_CALL_SLOT_H_
