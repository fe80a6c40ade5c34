#include "core/memory/average.h"

namespace softlookup {

MemoryValue AverageMemory::Read() const {
  return ReadSince(AverageMemory(keys_.dim(), values_.dim()));
}

MemoryValue AverageMemory::ReadSince(const RunningMemory& earlier) const {
  const auto& start = static_cast<const AverageMemory&>(earlier);
  MemoryValue average{.key = keys_.Minus(start.keys_),
                      .value = values_.Minus(start.values_),
                      .weight = row_count_ - start.row_count_};
  if (average.weight > 0) {
    for (double& component : average.key) component /= average.weight;
    for (double& component : average.value) component /= average.weight;
  }
  return average;
}

}  // namespace softlookup
