#ifndef SOFTLOOKUP_CORE_ENGINE_RANKING_BUDGET_H_
#define SOFTLOOKUP_CORE_ENGINE_RANKING_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "core/attention/attention_task.h"
#include "core/base/check.h"
#include "core/engine/byte_budget.h"

namespace softlookup {

// Counts the bytes that lookups and Attends in progress take to rank rows, against
// Limits::ranking_bytes_max. A head query with `top_k` keeps its best rows until all rows are
// scanned. A lookup takes its bytes when its rows are selected, before its pass. Thread-safe.
class RankingBudget {
 public:
  // Bytes that are taken also count as reserved in `budget`, which must outlive this.
  RankingBudget(std::int64_t limit, ByteBudget& budget) : limit_(limit), budget_(budget) {}

  // Bytes that are taken until this object is destroyed.
  class Taken {
   public:
    Taken() = default;
    Taken(Taken&& other) noexcept
        : ranking_budget_(std::exchange(other.ranking_budget_, nullptr)),
          bytes_(other.bytes_),
          reserved_(std::move(other.reserved_)) {}
    Taken& operator=(Taken&&) = delete;
    ~Taken() {
      if (ranking_budget_ == nullptr) return;
      const std::int64_t before = ranking_budget_->used_.fetch_sub(bytes_);
      SOFTLOOKUP_DCHECK(before >= bytes_) << bytes_ << " of " << before << " bytes given back";
    }

   private:
    friend class RankingBudget;
    Taken(RankingBudget& ranking_budget, std::int64_t bytes)
        : ranking_budget_(&ranking_budget),
          bytes_(bytes),
          reserved_(std::in_place, ranking_budget.budget_, bytes) {}

    RankingBudget* ranking_budget_ = nullptr;
    std::int64_t bytes_ = 0;
    std::optional<ByteBudget::Reserved> reserved_;
  };

  // Takes the bytes that `task` needs, none if it has no `top_k`. LIMIT_EXCEEDED if the task alone
  // needs more than the limit. QUEUE_FULL with a retry delay if other lookups and Attends have left
  // too few bytes. `query_count` is the task's number of queries. task.queries cannot tell this
  // number, because inputs that are not projected yet leave task.queries empty.
  absl::StatusOr<Taken> Take(const AttentionTask& task, std::int64_t query_count);

 private:
  const std::int64_t limit_;
  ByteBudget& budget_;
  std::atomic<std::int64_t> used_{0};
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_RANKING_BUDGET_H_
