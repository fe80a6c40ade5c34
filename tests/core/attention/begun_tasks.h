#ifndef SOFTLOOKUP_TESTS_CORE_ATTENTION_BEGUN_TASKS_H_
#define SOFTLOOKUP_TESTS_CORE_ATTENTION_BEGUN_TASKS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/types/span.h"
#include "core/attention/task_answer.h"
#include "tests/core/attention/test_rows.h"

namespace softlookup {

inline constexpr std::int64_t kPassKeyDim = 8, kPassValueDim = 4;

// Tasks of a pass that have begun.
class BegunTasks {
 public:
  void Add(const AttentionTask& task) {
    const CancelToken& cancel = cancels_.emplace_back();
    const AttentionTask& kept = tasks_.emplace_back(task);
    EXPECT_TRUE(answers_.emplace_back(kept, cancel).Begin().ok());
    pointers_.push_back(&answers_.back());
  }
  absl::Span<TaskAnswer* const> all() const { return pointers_; }
  CancelToken& cancel(std::size_t task) { return cancels_[task]; }
  TaskAnswer& operator[](std::size_t task) { return answers_[task]; }

 private:
  std::deque<CancelToken> cancels_;
  std::deque<AttentionTask> tasks_;
  std::deque<TaskAnswer> answers_;
  std::vector<TaskAnswer*> pointers_;
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

}  // namespace softlookup

#endif  // SOFTLOOKUP_TESTS_CORE_ATTENTION_BEGUN_TASKS_H_
