#ifndef SOFTLOOKUP_CORE_PARALLEL_LOOP_SHARES_H_
#define SOFTLOOKUP_CORE_PARALLEL_LOOP_SHARES_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/container/fixed_array.h"

namespace softlookup {

// Hands out the iterations of a loop, each once, to the threads that ask for one. Thread-safe.
//
// Each thread begins with its own share of the loop. Loops of equal length have the same shares. So
// a thread finds the data of the previous loop in its own cache, if both loops work on the same
// data.
class LoopShares {
 public:
  // Divides the iterations [0, count) into `share_count` shares of neighbours, of about equal size.
  LoopShares(std::int64_t count, int share_count);

  // Takes an iteration of share number `own` modulo the number of shares. If that share is used up,
  // takes one of another share. Returns nothing if all iterations have been taken.
  std::optional<std::int64_t> Take(int own);

 private:
  // The iterations in [next, end) are left. Each share has a cache line of its own, because
  // different threads change them.
  struct alignas(64) Share {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };

  absl::FixedArray<Share, 8> shares_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_PARALLEL_LOOP_SHARES_H_
