#include "core/attention/head_query_order.h"

#include <algorithm>

namespace softlookup {
namespace {

// Returns true if head queries with the plans `a` and `b`, of equal heads, can be scanned together.
// Options that are not compared decide only ranges of positions and lists of weights. All tasks of
// a pass have the same dimensions and matrix unit.
bool AreEqual(const ScanPlan& a, const ScanPlan& b) {
  const ResolvedOptions &x = a.options, &y = b.options;
  return x.score == y.score && x.temperature == y.temperature && x.mode == y.mode &&
         x.top_k == y.top_k && x.min_score == y.min_score && x.ln_decay == y.ln_decay &&
         x.max_error == y.max_error && (x.ln_decay == 0 || a.age_end == b.age_end) &&
         a.collected_rows_left == b.collected_rows_left && a.sum_values == b.sum_values;
}

}  // namespace

HeadQueryOrder::HeadQueryOrder(absl::Span<PassTask* const> tasks)
    : tasks_(tasks.begin(), tasks.end()) {
  std::vector<ScanPlan> plans;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const ScanPlan plan = tasks_[i]->head_queries().PlanOf(0);
    const auto found = std::find_if(plans.begin(), plans.end(),
                                    [&](const ScanPlan& other) { return AreEqual(plan, other); });
    const auto number = static_cast<std::size_t>(found - plans.begin());
    if (found == plans.end()) {
      plans.push_back(plan);
      tasks_of_plan_.emplace_back();
    }
    tasks_of_plan_[number].push_back(i);
    plan_of_task_.push_back(number);
  }
}

std::optional<HeadQueryRef> HeadQueryOrder::Next() {
  if (cursor_.plan == tasks_of_plan_.size()) return std::nullopt;
  const std::vector<std::size_t>& of_plan = tasks_of_plan_[cursor_.plan];
  const std::size_t task_index = of_plan[cursor_.task];
  PassTask* const task = tasks_[task_index];
  const std::int64_t query_count = task->attention_task().query_count();
  const HeadQueryRef next{
      .task = task, .task_index = task_index, .number = cursor_.head * query_count + cursor_.query};
  if (++cursor_.query < query_count) return next;
  cursor_.query = 0;
  if (++cursor_.task < of_plan.size()) return next;
  cursor_.task = 0;
  if (++cursor_.head < task->attention_task().num_heads) return next;
  cursor_.head = 0;
  ++cursor_.plan;
  return next;
}

bool HeadQueryOrder::ShareScan(const HeadQueryRef& a, const HeadQueryRef& b) const {
  return plan_of_task_[a.task_index] == plan_of_task_[b.task_index] &&
         a.task->head_queries().HeadOf(a.number) == b.task->head_queries().HeadOf(b.number);
}

}  // namespace softlookup
