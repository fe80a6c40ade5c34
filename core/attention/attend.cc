#include "core/attention/attend.h"

#include <deque>
#include <utility>
#include <vector>

#include "core/attention/shared_pass.h"
#include "core/attention/task_answer.h"

namespace softlookup {

ScannedRows AttendTogether(absl::Span<SharedTask> tasks, ForkJoinPool& pool) {
  std::deque<TaskAnswer> answers;
  std::vector<TaskAnswer*> begun;
  std::vector<SharedTask*> their_tasks;
  for (SharedTask& shared : tasks) {
    absl::Status status = shared.cancel->Check();
    if (status.ok() && shared.task->query_count() == 0) {
      shared.answer = AttentionAnswer{};
      continue;
    }
    if (status.ok()) status = answers.emplace_back(*shared.task, *shared.cancel).Begin();
    if (!status.ok()) {
      shared.answer = std::move(status);
      continue;
    }
    begun.push_back(&answers.back());
    their_tasks.push_back(&shared);
  }
  if (begun.empty()) return {};
  const ScannedRows scanned = SharedPass(begun, pool).Run();
  for (std::size_t i = 0; i < begun.size(); ++i) their_tasks[i]->answer = begun[i]->Take();
  return scanned;
}

absl::StatusOr<AttentionAnswer> Attend(const AttentionTask& task, ForkJoinPool& pool,
                                       const CancelToken& cancel) {
  SharedTask shared{.task = &task, .cancel = &cancel};
  AttendTogether(absl::MakeSpan(&shared, 1), pool);
  return std::move(shared.answer);
}

}  // namespace softlookup
