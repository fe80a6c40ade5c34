#ifndef SOFTLOOKUP_CORE_ENGINE_RANKING_MEMORY_H_
#define SOFTLOOKUP_CORE_ENGINE_RANKING_MEMORY_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "core/attention/attention_task.h"
#include "core/base/check.h"
#include "core/engine/memory_budget.h"

namespace softlookup {

// Counts the bytes that lookups and Attends in progress take to rank rows, against
// Limits::ranking_bytes_max. A head query with `top_k` keeps its best rows until all rows are
// scanned. A lookup takes its bytes when its rows are selected, before its pass. Thread-safe.
class RankingMemory {
 public:
  // Bytes that are taken also count as waiting in `budget`, which must outlive this.
  RankingMemory(std::int64_t limit, MemoryBudget& budget) : limit_(limit), budget_(budget) {}

  // Bytes that are taken until this object is destroyed.
  class Taken {
   public:
    Taken() = default;
    Taken(Taken&& other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)),
          bytes_(other.bytes_),
          waiting_(std::move(other.waiting_)) {}
    Taken& operator=(Taken&&) = delete;
    ~Taken() {
      if (memory_ == nullptr) return;
      const std::int64_t before = memory_->used_.fetch_sub(bytes_);
      SOFTLOOKUP_DCHECK(before >= bytes_) << bytes_ << " of " << before << " bytes given back";
    }

   private:
    friend class RankingMemory;
    Taken(RankingMemory& memory, std::int64_t bytes)
        : memory_(&memory), bytes_(bytes), waiting_(std::in_place, memory.budget_, bytes) {}

    RankingMemory* memory_ = nullptr;
    std::int64_t bytes_ = 0;
    std::optional<MemoryBudget::Waiting> waiting_;
  };

  // Takes the bytes that `task` needs, none if it has no `top_k`. LIMIT_EXCEEDED if the task alone
  // needs more than the limit. QUEUE_FULL with a retry delay if the bytes taken by others leave too
  // few. `query_count` is the task's number of queries. task.queries cannot tell it, because it is
  // not set before the queries are projected.
  absl::StatusOr<Taken> Take(const AttentionTask& task, std::int64_t query_count);

 private:
  const std::int64_t limit_;
  MemoryBudget& budget_;
  std::atomic<std::int64_t> used_{0};
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_RANKING_MEMORY_H_
