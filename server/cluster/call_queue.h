#ifndef SOFTLOOKUP_SERVER_CLUSTER_CALL_QUEUE_H_
#define SOFTLOOKUP_SERVER_CLUSTER_CALL_QUEUE_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace softlookup::server {

// A completion queue with a thread that waits in gRPC only while a call is in progress. All threads
// that wait in gRPC take events of all connections, and wake the thread that an event is for. So a
// thread that has nothing to wait for would make the calls of others dearer. Thread-safe.
class CallQueue {
 public:
  CallQueue() = default;
  // No call may be in progress. Waits until the last OnEvent() has returned.
  ~CallQueue();
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // Returns the queue for one call, which must have exactly one event there, a QueueEvent.
  grpc::CompletionQueue* ForOneCall();

 private:
  void Run();

  grpc::CompletionQueue queue_;
  absl::Mutex mutex_;
  std::size_t in_progress_ ABSL_GUARDED_BY(mutex_) = 0;  // Calls whose events have not come.
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_{[this] { Run(); }};  // Declared last, because it uses the other members.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_CLUSTER_CALL_QUEUE_H_
