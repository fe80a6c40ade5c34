#ifndef SOFTLOOKUP_CORE_ENGINE_RANKING_MEMORY_H_
#define SOFTLOOKUP_CORE_ENGINE_RANKING_MEMORY_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "core/attention/attention_task.h"

namespace softlookup {

// The bytes that ranking rows takes while lookups run, against Limits::ranking_bytes_max: each
// query keeps its `top_k` best rows until all are looked at. Thread-safe.
class RankingMemory {
 public:
  explicit RankingMemory(std::int64_t limit) : limit_(limit) {}

  // Bytes that are taken for as long as this lives.
  class Taken {
   public:
    Taken() = default;
    Taken(Taken&& other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}
    Taken& operator=(Taken&& other) noexcept {
      std::swap(memory_, other.memory_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Taken() {
      if (memory_ != nullptr) memory_->used_ -= bytes_;
    }

   private:
    friend class RankingMemory;
    Taken(RankingMemory& memory, std::int64_t bytes) : memory_(&memory), bytes_(bytes) {}

    RankingMemory* memory_ = nullptr;
    std::int64_t bytes_ = 0;
  };

  // What the task takes. LIMIT_EXCEEDED if that is more than all may, QUEUE_FULL, with when to come
  // back, if it is more than others leave.
  // `query_count` is the task's, also where its queries are still to be projected.
  absl::StatusOr<Taken> Take(const AttentionTask& task, std::int64_t query_count);

 private:
  const std::int64_t limit_;
  std::atomic<std::int64_t> used_{0};
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_RANKING_MEMORY_H_
