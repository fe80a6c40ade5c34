#ifndef SOFTLOOKUP_CORE_ATTENTION_ATTEND_H_
#define SOFTLOOKUP_CORE_ATTENTION_ATTEND_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/attention/attention_task.h"
#include "core/base/cancellation.h"
#include "core/parallel/fork_join_pool.h"

namespace softlookup {

// Answers the task on the calling thread and idle threads of `pool`. The bits of a query's answer
// depend neither on the other queries nor on the number of threads. Each block is scanned by itself
// in a fixed order, and the blocks' states are merged in the order of positions.
//
// Returns the status of `cancel` at most 10 ms of work after its cancellation. Returns
// RESOURCE_EXHAUSTED if the answer is larger than the task allows. The error states the bytes that
// the answer needs at least.
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
// Attend gives. Tasks with equal options also share the arithmetic, even if they have one query
// each. Returns what the pass has read.
ScannedRows AttendTogether(absl::Span<SharedTask> tasks, ForkJoinPool& pool);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_ATTEND_H_
