#ifndef SOFTLOOKUP_CORE_MEMORY_AVERAGE_H_
#define SOFTLOOKUP_CORE_MEMORY_AVERAGE_H_

#include "core/memory/compensated_sum.h"
#include "core/memory/running_memory.h"

namespace softlookup {

// AVERAGE: row i, counted from 0, makes m = (x_i + i m) / (i + 1), where x_i is its key or value.
// The class keeps sums, so that the average of any window of rows follows from the states at the
// window's two ends.
class AverageMemory final : public RunningMemory {
 public:
  AverageMemory(std::int64_t key_dim, std::int64_t value_dim)
      : keys_(key_dim), values_(value_dim) {}

  std::unique_ptr<RunningMemory> Clone() const override {
    return std::make_unique<AverageMemory>(*this);
  }
  void Add(const float* key, std::int64_t key_stride, const float* value) override {
    keys_.Add(key, key_stride);
    values_.Add(value);
    row_count_ += 1;
  }
  MemoryValue Read() const override;
  bool has_windows() const override { return true; }
  MemoryValue ReadSince(const RunningMemory& earlier) const override;
  std::int64_t bytes() const override {
    return HeapBytes(sizeof(*this)) + keys_.heap_bytes() + values_.heap_bytes();
  }

 protected:
  Parts parts() override {
    return {keys_.high(), keys_.low(), values_.high(), values_.low(), {&row_count_, 1}};
  }

 private:
  CompensatedSum keys_;
  CompensatedSum values_;
  double row_count_ = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_MEMORY_AVERAGE_H_
