#include "core/store/store_bytes.h"

#include <string>

#include "core/memory/heap_bytes.h"
#include "core/store/snapshot.h"
#include "core/store/store.h"
#include "core/store/store_writer.h"

namespace softlookup {

std::int64_t FixedStoreBytes() {
  constexpr std::int64_t kTableEntryBytes = 96;
  return HeapBytes(sizeof(StoreWriter)) + SharedBytes<Snapshot>() + SharedBytes<Store>() +
         kTableEntryBytes;
}

std::int64_t ConfigBytes(const StoreConfig& config) {
  // The engine's table has a copy of the name.
  std::int64_t bytes = SharedBytes<StoreConfig>() + 2 * HeapBytes(config.name);
  bytes += HeapBytes(config.memories);
  for (const MemorySpec& memory : config.memories) {
    // The running memory has a copy of the gate.
    bytes += HeapBytes(memory.name) + 2 * HeapBytes(memory.gate);
  }
  constexpr std::size_t kTreeNodeBytes = 32;
  for (const auto& [key, value] : config.labels) {
    bytes +=
        HeapBytes(kTreeNodeBytes + 2 * sizeof(std::string)) + HeapBytes(key) + HeapBytes(value);
  }
  if (const Projection* projection = config.projection.get()) {
    bytes += SharedBytes<Projection>() + HeapBytes(projection->query) + HeapBytes(projection->key) +
             HeapBytes(projection->value);
  }
  return bytes;
}

}  // namespace softlookup
