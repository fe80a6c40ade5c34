#ifndef SOFTLOOKUP_CORE_ATTENTION_PASS_TASK_H_
#define SOFTLOOKUP_CORE_ATTENTION_PASS_TASK_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "core/attention/attention_task.h"
#include "core/attention/head_queries.h"
#include "core/base/cancellation.h"

namespace softlookup {

// One of the tasks of a pass: what is asked, its head queries, and whether it goes on.
//
// Several threads may work on different head queries at the same time. Continues() is thread-safe.
class PassTask {
 public:
  // `task` and `cancel` must outlive this object. `collected_rows_max` is as in HeadQueries.
  PassTask(const AttentionTask& task, const CancelToken& cancel, std::int64_t collected_rows_max)
      : cancel_(cancel), head_queries_(task, collected_rows_max) {}

  const AttentionTask& attention_task() const { return head_queries_.task(); }
  HeadQueries& head_queries() { return head_queries_; }
  const HeadQueries& head_queries() const { return head_queries_; }

  // Returns false once the task is cancelled. The rest of its head queries may then be left out.
  bool Continues();
  // Returns OK if no call of Continues() has returned false, else why the task was cancelled. Call
  // this after the pass.
  absl::Status status() const;

 private:
  const CancelToken& cancel_;
  HeadQueries head_queries_;
  std::atomic<bool> cancelled_{false};  // Set once the task is found to be cancelled.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_PASS_TASK_H_
