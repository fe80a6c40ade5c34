#include "core/memory/gated.h"

#include <cmath>

namespace softlookup {

void GatedMemory::Add(const float* key, std::int64_t key_stride, const float* value) {
  const std::vector<float>& gate = *gate_;
  double activation = gate[0];
  for (std::size_t i = 1; i < gate.size(); ++i) {
    activation += static_cast<double>(gate[i]) * key[static_cast<std::int64_t>(i - 1) * key_stride];
  }
  sum_.Add(1 / (1 + std::exp(-activation)), key, key_stride, value);
}

}  // namespace softlookup
