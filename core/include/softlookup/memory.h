#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_MEMORY_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_MEMORY_H_

#include <cstdint>
#include <string>
#include <vector>

namespace softlookup {

// The recurrence of a running memory. The enumerators have the numbers of
// proto/softlookup/v1/memory.proto, which defines what each one means.
enum class MemoryKind {
  kUnspecified = 0,
  kAverage = 1,
  kDecayedSum = 2,
  kDecayedAverage = 3,
  kGated = 4,
  kGatedAverage = 5,
};

struct MemorySpec {
  std::string name;
  MemoryKind kind = MemoryKind::kUnspecified;
  double decay = 0;         // In (0, 1), for the decayed kinds.
  std::vector<float> gate;  // key_dim + 1 finite numbers, the bias first, for the gated kinds.
};

// The contents of a memory, in float64 because a memory is a long sum.
struct MemoryValue {
  std::vector<double> key;    // key_dim
  std::vector<double> value;  // value_dim
  // The sum of the rows' weights, such as the number of rows for kAverage. The averages in `key`
  // and `value` are already divided by `weight`.
  double weight = 0;
};

// A memory over the positions [begin, end) of a store.
struct MemoryState {
  std::string name;
  MemoryValue memory;
  std::uint64_t begin = 0;  // The memory covers the positions [begin, end).
  std::uint64_t end = 0;
  std::uint64_t revision = 0;
  // Tells a store from an earlier one of the same name. Only Engine::GetMemory sets it; in an
  // AppendResult it is 0.
  std::uint64_t incarnation = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_MEMORY_H_
