#ifndef SOFTLOOKUP_CLIENT_LOADTEST_RECORDER_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_RECORDER_H_

#include <grpcpp/support/status.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/loadtest/latency_histogram.h"
#include "client/loadtest/load_options.h"
#include "client/loadtest/request_mix.h"

namespace softlookup::loadtest {

enum class Outcome {
  kOk,
  kRejected,  // The server rejected the call: RESOURCE_EXHAUSTED, or UNAVAILABLE with details.
  kFailed,    // Any other failure.
};
Outcome OutcomeOf(const grpc::Status& status);

inline constexpr int kCodeCount = 17;  // Number of gRPC's status codes.

// How the calls of a run ended. Most members cover the calls that were due in the measurement
// window. The `all_` counts cover all calls of the run. `ok_meanwhile` covers the calls that ended
// in the window.
struct Tally {
  struct OfMethod {
    // Times from when a call was due (open loop) or sent (closed loop) to its answer. Covers the
    // calls that ended OK and those that timed out. A timed-out call would have taken longer still,
    // so leaving it out would hide long times.
    LatencyHistogram latency;
    std::array<std::uint64_t, kCodeCount> codes = {};
    std::uint64_t rejected = 0;
    std::uint64_t overflow = 0;  // Calls that were due but not sent, as too many were in flight.

    std::uint64_t ok() const { return codes[grpc::StatusCode::OK]; }
    // Returns the calls that ended with any status. Calls that were given up do not count.
    std::uint64_t finished() const;
    std::uint64_t errors() const { return finished() - ok() - rejected; }
  };
  std::array<OfMethod, kMethodCount> methods;
  LatencyHistogram rejection;  // Latencies of rejected calls.
  LatencyHistogram lateness;   // Times from when a call was due to when it was sent. Open loop.
  std::uint64_t retries = 0;

  std::uint64_t all_sent = 0;
  std::uint64_t all_finished = 0;    // Calls that ended, all_unfinished included.
  std::uint64_t all_unfinished = 0;  // Calls given up with the run, so their outcome is unknown.
  std::uint64_t all_ok = 0;
  std::uint64_t all_rejected = 0;
  std::uint64_t all_errors = 0;
  std::uint64_t all_overflow = 0;
  // Calls that ended OK in the measurement window, no matter when they were due.
  std::uint64_t ok_meanwhile = 0;

  const OfMethod& of(Method method) const { return methods[static_cast<std::size_t>(method)]; }
  // Returns the sum over all methods.
  OfMethod sum() const;
};

// Records how calls end. Keeps the counts in 8 shards, so that threads seldom write to the same
// cache line. A thread always uses the same shard. Recording never waits for another thread, except
// for the first message of each status code.
class Recorder {
 public:
  Recorder();
  ~Recorder();

  // Sets the measurement window. Must be called before the first call.
  void SetWindow(Clock::time_point begin, Clock::time_point end);
  // Ends the measurement window at `now`, unless it ends earlier anyway. If the window has not
  // begun by `now`, it becomes empty.
  void EndWindow(Clock::time_point now);

  // Any thread may call the methods below.
  void Sent(Clock::time_point due, Clock::time_point now);
  void Retried(Clock::time_point due);
  void Overflowed(Method method, Clock::time_point due);
  void Finished(Method method, const grpc::Status& status, Outcome outcome, Clock::time_point due,
                Clock::time_point now);
  // Records a call that was given up.
  void Unfinished();

  // Returns what was recorded so far. Calls that end during Read() can be missing.
  Tally Read() const;

  // Returns the first error message for each status code that calls failed with. If the error had a
  // reason, the text is "REASON: message".
  std::map<grpc::StatusCode, std::string> FirstMessages() const;

 private:
  struct Shard;

  Shard& MyShard();
  bool IsMeasured(Clock::time_point due) const {
    return due >= begin_ && due < end_.load(std::memory_order_relaxed);
  }
  void NoteMessage(const grpc::Status& status);

  const std::vector<std::unique_ptr<Shard>> shards_;
  Clock::time_point begin_;
  std::atomic<Clock::time_point> end_;
  std::array<std::atomic<bool>, kCodeCount> has_message_ = {};
  mutable absl::Mutex mutex_;
  std::map<grpc::StatusCode, std::string> messages_ ABSL_GUARDED_BY(mutex_);
};

// Returns the code's name, such as "DEADLINE_EXCEEDED".
std::string NameOf(grpc::StatusCode code);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_RECORDER_H_
