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
  kRejected,  // The server turned it away: RESOURCE_EXHAUSTED, or UNAVAILABLE with details.
  kFailed,    // Any other failure.
};
Outcome OutcomeOf(const grpc::Status& status);

inline constexpr int kCodeCount = 17;  // Of gRPC's status codes.

// What the calls of a run came to. Only `all_` counts have calls from outside the time that is
// measured; everything else has the calls that were due in it.
struct Tally {
  struct OfMethod {
    // From when a call was due (open loop) or sent (closed loop) to its answer. Calls that ended
    // OK, and those that timed out: they took at least as long.
    LatencyHistogram latency;
    std::array<std::uint64_t, kCodeCount> codes = {};
    std::uint64_t rejected = 0;
    std::uint64_t overflow = 0;  // Due, but not sent: too many were in flight.

    std::uint64_t ok() const { return codes[grpc::StatusCode::OK]; }
    std::uint64_t finished() const;
    std::uint64_t errors() const { return finished() - ok() - rejected; }
  };
  std::array<OfMethod, kMethodCount> methods;
  LatencyHistogram rejection;  // How long rejected calls took.
  LatencyHistogram lateness;   // From when a call was due to when it was sent. Open loop.
  std::uint64_t retries = 0;

  std::uint64_t all_sent = 0;
  std::uint64_t all_finished = 0;
  std::uint64_t all_unfinished = 0;  // Given up with the run, so nothing is known of them.
  std::uint64_t all_ok = 0;
  std::uint64_t all_rejected = 0;
  std::uint64_t all_errors = 0;
  std::uint64_t all_overflow = 0;
  // Calls that ended OK while it was measured, whenever they were due.
  std::uint64_t ok_meanwhile = 0;

  const OfMethod& of(Method method) const { return methods[static_cast<std::size_t>(method)]; }
  // Of all methods together.
  OfMethod sum() const;
};

// Takes down what becomes of calls. Threads that record do not wait for each other: each has a
// shard of its own (among many threads, some share one).
class Recorder {
 public:
  Recorder();
  ~Recorder();

  // The time that is measured. Before the first call.
  void SetWindow(Clock::time_point begin, Clock::time_point end);
  // It ends now, if it had not.
  void EndWindow(Clock::time_point now);

  void Sent(Clock::time_point due, Clock::time_point now);
  void Retried(Clock::time_point due);
  void Overflowed(Method method, Clock::time_point due);
  void Finished(Method method, const grpc::Status& status, Outcome outcome, Clock::time_point due,
                Clock::time_point now);
  // A call that was given up.
  void Unfinished();

  Tally Read() const;

  // The first message of each code that failed, in this process's words or the server's.
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

// "DEADLINE_EXCEEDED".
std::string NameOf(grpc::StatusCode code);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_RECORDER_H_
