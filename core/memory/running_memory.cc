#include "core/memory/running_memory.h"

#include <algorithm>
#include <cstdlib>

#include "core/memory/average.h"
#include "core/memory/decayed.h"
#include "core/memory/gated.h"
#include "core/memory/heap_bytes.h"

namespace softlookup {

MemoryValue RunningMemory::ReadSince(const RunningMemory&) const { std::abort(); }

void RunningMemory::Save(std::vector<double>& state) const {
  // parts() is not const, because Restore() writes through its result. parts() itself changes
  // nothing, so the cast is safe.
  for (const absl::Span<double> part : const_cast<RunningMemory*>(this)->parts()) {
    state.insert(state.end(), part.begin(), part.end());
  }
}

bool RunningMemory::Restore(absl::Span<const double>& state) {
  for (const absl::Span<double> part : parts()) {
    if (state.size() < part.size()) return false;
    std::copy_n(state.begin(), part.size(), part.begin());
    state.remove_prefix(part.size());
  }
  return true;
}

std::unique_ptr<RunningMemory> MakeRunningMemory(const MemorySpec& spec, std::int64_t key_dim,
                                                 std::int64_t value_dim) {
  switch (spec.kind) {
    case MemoryKind::kAverage:
      return std::make_unique<AverageMemory>(key_dim, value_dim);
    case MemoryKind::kDecayedSum:
      return std::make_unique<DecayedMemory>(spec.decay, Normalise::kNo, key_dim, value_dim);
    case MemoryKind::kDecayedAverage:
      return std::make_unique<DecayedMemory>(spec.decay, Normalise::kYes, key_dim, value_dim);
    case MemoryKind::kGated:
      return std::make_unique<GatedMemory>(spec.gate, Normalise::kNo, key_dim, value_dim);
    case MemoryKind::kGatedAverage:
      return std::make_unique<GatedMemory>(spec.gate, Normalise::kYes, key_dim, value_dim);
    case MemoryKind::kUnspecified:
      break;
  }
  std::abort();  // The engine checks the kind.
}

MemorySet::MemorySet(const std::vector<MemorySpec>& specs, std::int64_t key_dim,
                     std::int64_t value_dim) {
  memories_.reserve(specs.size());
  for (const MemorySpec& spec : specs) {
    memories_.push_back(MakeRunningMemory(spec, key_dim, value_dim));
  }
}

MemorySet::MemorySet(const MemorySet& other) {
  memories_.reserve(other.memories_.size());
  for (const auto& memory : other.memories_) memories_.push_back(memory->Clone());
}

void MemorySet::Add(const float* key, std::int64_t key_stride, const float* value) {
  for (const auto& memory : memories_) memory->Add(key, key_stride, value);
}

std::vector<double> MemorySet::Save() const {
  std::vector<double> state;
  for (const auto& memory : memories_) memory->Save(state);
  return state;
}

bool MemorySet::Restore(absl::Span<const double> state) {
  for (const auto& memory : memories_) {
    if (!memory->Restore(state)) return false;
  }
  return state.empty();
}

std::int64_t MemorySet::bytes() const {
  std::int64_t bytes = SharedBytes<MemorySet>() + HeapBytes(memories_);
  for (const auto& memory : memories_) bytes += memory->bytes();
  return bytes;
}

}  // namespace softlookup
