#ifndef SOFTLOOKUP_CORE_ATTENTION_ATTEND_H_
#define SOFTLOOKUP_CORE_ATTENTION_ATTEND_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/attention/attention_task.h"
#include "core/base/cancellation.h"
#include "core/parallel/fork_join_pool.h"

namespace softlookup {

// Answers the task on the calling thread and idle threads of `pool`. A query's answer has the same
// bits alone or in any batch, on any number of threads: every block is scanned for itself, in a
// fixed order within, and the blocks' states are merged in position order.
//
// Returns the status of `cancel` within 10 ms of work after its cancellation, and
// RESOURCE_EXHAUSTED, with the bytes it would need, if the answer would be larger than allowed.
absl::StatusOr<AttentionAnswer> Attend(const AttentionTask& task, ForkJoinPool& pool,
                                       const CancelToken& cancel);

// A task that shares a pass, and what became of it.
struct SharedTask {
  const AttentionTask* task = nullptr;
  const CancelToken* cancel = nullptr;
  absl::StatusOr<AttentionAnswer> answer = AttentionAnswer();
};

// Answers tasks over rows of one store, of the same dimensions and heads, in one pass over those
// rows, each as Attend does, to the bit. Tasks that ask the same of a row, such as one query each
// with the same options, also share the arithmetic.
ScannedRows AttendTogether(absl::Span<SharedTask> tasks, ForkJoinPool& pool);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_ATTEND_H_
