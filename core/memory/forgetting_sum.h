#ifndef SOFTLOOKUP_CORE_MEMORY_FORGETTING_SUM_H_
#define SOFTLOOKUP_CORE_MEMORY_FORGETTING_SUM_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/memory/heap_bytes.h"
#include "softlookup/memory.h"

namespace softlookup {

// Whether a memory is divided by its weight when it is read.
enum class Normalise { kNo, kYes };

// The recurrence that the decayed and the gated memories share. Each row makes m = keep m + x,
// where x is its key or value. The row also makes the weight w = keep w + 1.
class ForgettingSum {
 public:
  ForgettingSum(std::int64_t key_dim, std::int64_t value_dim)
      : sum_{.key = std::vector<double>(key_dim), .value = std::vector<double>(value_dim)} {}

  void Add(double keep, const float* key, std::int64_t key_stride, const float* value) {
    for (std::size_t i = 0; i < sum_.key.size(); ++i) {
      sum_.key[i] = keep * sum_.key[i] + key[static_cast<std::int64_t>(i) * key_stride];
    }
    for (std::size_t i = 0; i < sum_.value.size(); ++i) {
      sum_.value[i] = keep * sum_.value[i] + value[i];
    }
    sum_.weight = keep * sum_.weight + 1;
  }

  MemoryValue Read(Normalise normalise) const {
    MemoryValue memory = sum_;
    if (normalise == Normalise::kYes && memory.weight > 0) {
      for (double& component : memory.key) component /= memory.weight;
      for (double& component : memory.value) component /= memory.weight;
    }
    return memory;
  }

  std::vector<absl::Span<double>> parts() {
    return {absl::MakeSpan(sum_.key), absl::MakeSpan(sum_.value), {&sum_.weight, 1}};
  }

  // Returns the bytes allocated besides the object itself.
  std::int64_t heap_bytes() const { return HeapBytes(sum_.key) + HeapBytes(sum_.value); }

 private:
  MemoryValue sum_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_MEMORY_FORGETTING_SUM_H_
