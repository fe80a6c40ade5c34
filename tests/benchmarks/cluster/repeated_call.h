#ifndef SOFTLOOKUP_TESTS_BENCHMARKS_CLUSTER_REPEATED_CALL_H_
#define SOFTLOOKUP_TESTS_BENCHMARKS_CLUSTER_REPEATED_CALL_H_

#include <atomic>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace softlookup::testing {

// A client that makes the same call again and again, each once the one before is answered.
class RepeatedCall {
 public:
  // What came since the last call of Take().
  struct Times {
    std::vector<double> milliseconds;  // Of calls that went well, sorted.
    int failed = 0;

    // The smallest time that is larger than that of `share` of all.
    double Quantile(double share) const;
  };

  // `call` runs on a thread of its own, and returns whether it went well.
  explicit RepeatedCall(absl::AnyInvocable<bool()> call);
  // Waits for the call in progress.
  ~RepeatedCall();
  RepeatedCall(const RepeatedCall&) = delete;
  RepeatedCall& operator=(const RepeatedCall&) = delete;

  Times Take();

 private:
  void Run();

  absl::AnyInvocable<bool()> call_;
  std::atomic<bool> must_end_ = false;
  absl::Mutex mutex_;
  Times times_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // Declared last, because it uses the other members.
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_BENCHMARKS_CLUSTER_REPEATED_CALL_H_
