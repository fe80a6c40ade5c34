#ifndef SOFTLOOKUP_CORE_SCHEDULER_RETURN_WAIT_H_
#define SOFTLOOKUP_CORE_SCHEDULER_RETURN_WAIT_H_

#include <cstdint>

#include "absl/time/time.h"

namespace softlookup {

// Decides how long the next batch of a store waits for the clients that the last batch answered. A
// client returns when it submits another job. Expects as large a part of these clients to return as
// returned after the batch before. The caller passes the current time, which must not go back. Not
// thread-safe.
class ReturnWait {
 public:
  // Notes that a job of the store was added.
  void OnJob(absl::Time now) {
    if (now <= end_) ++returned_count_;
  }
  // Notes that a batch is about to answer `answered_count` jobs while `waiting_count` others wait.
  // The next batch waits until `end` at the latest.
  void OnAnswers(std::int64_t answered_count, std::int64_t waiting_count, absl::Time end);

  // Returns whether the next batch should wait for more jobs until end(), if `waiting_count` jobs
  // wait now.
  bool Awaits(std::int64_t waiting_count) const { return waiting_count < awaited_count_; }
  absl::Time end() const { return end_; }

 private:
  // The last batch to send its answers answered `answered_count_` jobs. `returned_count_` jobs were
  // added between these answers and `end_`.
  std::int64_t answered_count_ = 0;
  std::int64_t returned_count_ = 0;
  absl::Time end_ = absl::InfinitePast();
  std::int64_t awaited_count_ = 0;  // The wait ends when this many jobs wait.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_SCHEDULER_RETURN_WAIT_H_
