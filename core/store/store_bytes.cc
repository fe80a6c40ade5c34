#include "core/store/store_bytes.h"

#include <string>

#include "core/memory/heap_bytes.h"
#include "core/store/snapshot.h"
#include "core/store/store.h"
#include "core/store/store_editor.h"

namespace softlookup {

std::int64_t FixedStoreBytes() {
  constexpr std::int64_t kTableEntryBytes = 96;  // An entry of the engine's StoreTable, a B-tree.
  return HeapBytes(sizeof(StoreEditor)) + SharedBytes<Snapshot>() + SharedBytes<Store>() +
         kTableEntryBytes;
}

std::int64_t ConfigBytes(const StoreConfig& config) {
  // The name counts twice, because the engine's table has a copy.
  std::int64_t bytes = SharedBytes<StoreConfig>() + 2 * HeapBytes(config.name);
  bytes += HeapBytes(config.memories);
  for (const MemorySpec& memory : config.memories) {
    // The gate counts twice, because the running memory has a copy.
    bytes += HeapBytes(memory.name) + 2 * HeapBytes(memory.gate);
  }
  constexpr std::size_t kTreeNodeBytes = 32;  // What std::map adds to each element.
  for (const auto& [key, value] : config.labels) {
    bytes +=
        HeapBytes(kTreeNodeBytes + 2 * sizeof(std::string)) + HeapBytes(key) + HeapBytes(value);
  }
  bytes += HeapBytes(config.ranges);
  for (const StoreRange& range : config.ranges) {
    bytes += HeapBytes(range.nodes);
    for (const std::string& node : range.nodes) bytes += HeapBytes(node);
  }
  if (const Projection* projection = config.projection.get()) {
    bytes += SharedBytes<Projection>() + HeapBytes(projection->query) + HeapBytes(projection->key) +
             HeapBytes(projection->value);
  }
  return bytes;
}

}  // namespace softlookup
