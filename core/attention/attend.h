#ifndef SOFTLOOKUP_CORE_ATTENTION_ATTEND_H_
#define SOFTLOOKUP_CORE_ATTENTION_ATTEND_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/attention/attention_task.h"
#include "core/base/cancellation.h"
#include "core/parallel/fork_join_pool.h"

namespace softlookup {

// Answers the task on the calling thread and idle threads of `pool`. The bits of a query's answer
// depend neither on the other queries nor on the number of threads. The reason: each block is
// scanned by itself, and the blocks' states are merged in the order of positions.
//
// If `cancel` is cancelled or its deadline passes before the answer is ready, returns the error of
// cancel.Check(). No thread then works on for more than 10 ms. Returns RESOURCE_EXHAUSTED if the
// answer is sure to take more than task.answer_bytes_max bytes. That error states a lower bound on
// the answer's bytes.
absl::StatusOr<AttentionAnswer> Attend(const AttentionTask& task, ForkJoinPool& pool,
                                       const CancelToken& cancel);

// A task that shares a pass, with its answer. The task and the token are not owned.
struct SharedTask {
  const AttentionTask* task = nullptr;
  const CancelToken* cancel = nullptr;
  absl::StatusOr<AttentionAnswer> answer = AttentionAnswer();
};

// Sets the answer of each task, in one pass over the rows of all tasks. The rows must be of one
// store, and the tasks must have the same dimensions and heads. Each answer has the bits that
// Attend gives. If tasks have equal options, one tile may hold queries of several of them. Many
// tasks of one query each therefore take less time together than one by one. Returns what the pass
// has read.
ScannedRows AttendTogether(absl::Span<SharedTask> tasks, ForkJoinPool& pool);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_ATTEND_H_
