#include "core/store/store_memories.h"

namespace softlookup {
namespace {

// Returns the spec of memory `index`: 0 is `average`, then come config.memories.
const MemorySpec& SpecOf(const StoreConfig& config, std::size_t index) {
  static const auto& average = *new MemorySpec{.name = "average", .kind = MemoryKind::kAverage};
  return index == 0 ? average : config.memories[index - 1];
}

// Returns memory `index` before the first row.
std::unique_ptr<RunningMemory> NewMemory(const StoreConfig& config, std::size_t index) {
  return MakeRunningMemory(SpecOf(config, index), config.key_dim, config.value_dim);
}

}  // namespace

MemorySet MemorySetOf(const StoreConfig& config) {
  std::vector<MemorySpec> specs;
  for (std::size_t i = 0; i <= config.memories.size(); ++i) specs.push_back(SpecOf(config, i));
  return MemorySet(specs, config.key_dim, config.value_dim);
}

MemoryValue MemoriesView::Read(std::size_t index) const {
  return memories_ == nullptr ? NewMemory(config_, index)->Read() : (*memories_)[index].Read();
}

std::unique_ptr<RunningMemory> MemoriesView::Clone(std::size_t index) const {
  return memories_ == nullptr ? NewMemory(config_, index) : (*memories_)[index].Clone();
}

std::vector<double> MemoriesView::Save() const {
  return memories_ == nullptr ? MemorySetOf(config_).Save() : memories_->Save();
}

}  // namespace softlookup
