#ifndef SOFTLOOKUP_TESTS_CORE_ATTENTION_PASS_TASKS_H_
#define SOFTLOOKUP_TESTS_CORE_ATTENTION_PASS_TASKS_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/types/span.h"
#include "core/attention/head_query_round.h"
#include "core/attention/pass_task.h"
#include "core/attention/pass_threads.h"
#include "core/base/cancellation.h"
#include "tests/core/attention/test_rows.h"

namespace softlookup {

inline constexpr std::int64_t kPassKeyDim = 8, kPassValueDim = 4;

// The tasks of a pass.
class PassTasks {
 public:
  void Add(const AttentionTask& task) {
    const CancelToken& cancel = cancels_.emplace_back();
    const AttentionTask& kept = tasks_.emplace_back(task);
    pointers_.push_back(&pass_tasks_.emplace_back(kept, cancel, /*collected_rows_max=*/1 << 20));
  }
  absl::Span<PassTask* const> all() const { return pointers_; }
  CancelToken& cancel(std::size_t task) { return cancels_[task]; }
  PassTask& operator[](std::size_t task) { return pass_tasks_[task]; }

 private:
  std::deque<CancelToken> cancels_;
  std::deque<AttentionTask> tasks_;
  std::deque<PassTask> pass_tasks_;
  std::vector<PassTask*> pointers_;
};

// The task refers to `queries`.
inline AttentionTask TaskOver(const TestRows& rows, const std::vector<float>& queries,
                              std::uint64_t begin, std::uint64_t end, double temperature = 1,
                              std::int64_t num_heads = 1) {
  AttentionTask task = rows.Task(queries, {.temperature = temperature}, num_heads);
  task.begin = begin;
  task.end = end;
  return task;
}

// Measures and begins a round in the order of its `refs`, on this thread.
inline void BeginRound(HeadQueryRound& round) {
  round.Measure(PassThreads(Pool(), /*pass_cost=*/0));
  round.Begin();
}

}  // namespace softlookup

#endif  // SOFTLOOKUP_TESTS_CORE_ATTENTION_PASS_TASKS_H_
