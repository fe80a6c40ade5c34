#ifndef SOFTLOOKUP_CORE_MEMORY_DECAYED_H_
#define SOFTLOOKUP_CORE_MEMORY_DECAYED_H_

#include "core/memory/forgetting_sum.h"
#include "core/memory/running_memory.h"

namespace softlookup {

// DECAYED_SUM and DECAYED_AVERAGE: a ForgettingSum whose `keep` is the constant decay.
class DecayedMemory final : public RunningMemory {
 public:
  DecayedMemory(double decay, Normalise normalise, std::int64_t key_dim, std::int64_t value_dim)
      : decay_(decay), normalise_(normalise), sum_(key_dim, value_dim) {}

  std::unique_ptr<RunningMemory> Clone() const override {
    return std::make_unique<DecayedMemory>(*this);
  }
  void Add(const float* key, std::int64_t key_stride, const float* value) override {
    sum_.Add(decay_, key, key_stride, value);
  }
  MemoryValue Read() const override { return sum_.Read(normalise_); }
  std::int64_t bytes() const override { return HeapBytes(sizeof(*this)) + sum_.heap_bytes(); }

 protected:
  Parts parts() override { return sum_.parts(); }

 private:
  double decay_;
  Normalise normalise_;
  ForgettingSum sum_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_MEMORY_DECAYED_H_
