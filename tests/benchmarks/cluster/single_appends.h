#ifndef SOFTLOOKUP_TESTS_BENCHMARKS_CLUSTER_SINGLE_APPENDS_H_
#define SOFTLOOKUP_TESTS_BENCHMARKS_CLUSTER_SINGLE_APPENDS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "softlookup/v1/soft_lookup.grpc.pb.h"

namespace softlookup::testing {

// Returns an append of `rows` equal rows.
v1::AppendRequest MakeAppend(const std::string& store, std::uint32_t rows, std::uint32_t dim);

// A client that appends single rows, each once the one before is on disk.
class SingleAppends {
 public:
  // What came since the last call of Take().
  struct Times {
    std::vector<double> milliseconds;  // Of acknowledged appends, sorted.
    int failed = 0;

    // The smallest time that is larger than that of `share` of all.
    double Quantile(double share) const;
  };

  SingleAppends(std::unique_ptr<v1::SoftLookup::Stub> stub, const v1::AppendRequest& row);
  ~SingleAppends();
  SingleAppends(const SingleAppends&) = delete;
  SingleAppends& operator=(const SingleAppends&) = delete;

  Times Take();

 private:
  void Run();

  const std::unique_ptr<v1::SoftLookup::Stub> stub_;
  const v1::AppendRequest row_;
  std::atomic<bool> must_end_ = false;
  absl::Mutex mutex_;
  Times times_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // Declared last, because it uses the other members.
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_BENCHMARKS_CLUSTER_SINGLE_APPENDS_H_
