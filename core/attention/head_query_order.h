#ifndef SOFTLOOKUP_CORE_ATTENTION_HEAD_QUERY_ORDER_H_
#define SOFTLOOKUP_CORE_ATTENTION_HEAD_QUERY_ORDER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "core/attention/pass_task.h"

namespace softlookup {

// Identifies one head query of the tasks of a pass.
struct HeadQueryRef {
  PassTask* task = nullptr;    // The head query's task.
  std::size_t task_index = 0;  // Index of the task among the pass's tasks.
  std::int64_t number = 0;     // Index among the task's head queries.
};

// Enumerates the head queries of all tasks of a pass. Those that ScanBlock can scan together come
// one after another. The order is by plan first, then by head, then by task, then by query.
class HeadQueryOrder {
 public:
  // A place in the order, just before the head query that Next() would return.
  struct Cursor {
    std::size_t plan = 0;
    std::int64_t head = 0;
    std::size_t task = 0;  // Index among the tasks of the plan.
    std::int64_t query = 0;
  };

  // `tasks` are those of the pass. Each must have at least one query, and outlive this object.
  explicit HeadQueryOrder(absl::Span<PassTask* const> tasks);

  // Returns the next head query, or nothing at the end.
  std::optional<HeadQueryRef> Next();
  Cursor cursor() const { return cursor_; }
  void SeekTo(Cursor cursor) { cursor_ = cursor; }

  // Returns true if ScanBlock can scan `a` and `b` in one tile: their tasks have the same plan, and
  // their heads are the same.
  bool ShareScan(const HeadQueryRef& a, const HeadQueryRef& b) const;

 private:
  const std::vector<PassTask*> tasks_;
  std::vector<std::vector<std::size_t>> tasks_of_plan_;  // Indices in tasks_.
  std::vector<std::size_t> plan_of_task_;                // By index in tasks_.
  Cursor cursor_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_HEAD_QUERY_ORDER_H_
