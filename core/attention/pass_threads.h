#ifndef SOFTLOOKUP_CORE_ATTENTION_PASS_THREADS_H_
#define SOFTLOOKUP_CORE_ATTENTION_PASS_THREADS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "core/base/cost.h"
#include "core/parallel/fork_join_pool.h"

namespace softlookup {

// Runs the loops of a pass on the calling thread. Idle threads of the pool help if the pass is
// large.
class PassThreads {
 public:
  // `pool` must outlive this object. A pass is large if it costs more than kInlineCostMax.
  PassThreads(ForkJoinPool& pool, double pass_cost)
      : pool_(pool), is_large_(pass_cost > kInlineCostMax) {}

  int pool_thread_count() const { return pool_.thread_count(); }
  // Runs body(i) for each i in [0, count).
  void ForEach(std::int64_t count, absl::FunctionRef<void(std::int64_t)> body) const {
    if (is_large_) {
      pool_.ForkJoin(count, body);
    } else {
      for (std::int64_t i = 0; i < count; ++i) body(i);
    }
  }

 private:
  ForkJoinPool& pool_;
  const bool is_large_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_PASS_THREADS_H_
