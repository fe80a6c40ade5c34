#ifndef SOFTLOOKUP_CORE_MEMORY_GATED_H_
#define SOFTLOOKUP_CORE_MEMORY_GATED_H_

#include <memory>
#include <vector>

#include "core/memory/forgetting_sum.h"
#include "core/memory/running_memory.h"

namespace softlookup {

// GATED and GATED_AVERAGE: a ForgettingSum whose `keep` is sigmoid(gate . [1, k]) for a row with
// key k.
class GatedMemory final : public RunningMemory {
 public:
  GatedMemory(const std::vector<float>& gate, Normalise normalise, std::int64_t key_dim,
              std::int64_t value_dim)
      : gate_(std::make_shared<const std::vector<float>>(gate)),
        normalise_(normalise),
        sum_(key_dim, value_dim) {}

  std::unique_ptr<RunningMemory> Clone() const override {
    return std::make_unique<GatedMemory>(*this);
  }
  void Add(const float* key, std::int64_t key_stride, const float* value) override;
  MemoryValue Read() const override { return sum_.Read(normalise_); }
  std::int64_t bytes() const override { return HeapBytes(sizeof(*this)) + sum_.heap_bytes(); }

 protected:
  Parts parts() override { return sum_.parts(); }

 private:
  std::shared_ptr<const std::vector<float>> gate_;  // Shared by all copies.
  Normalise normalise_;
  ForgettingSum sum_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_MEMORY_GATED_H_
