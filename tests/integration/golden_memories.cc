#include "tests/integration/golden_memories.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>

#include "tests/integration/integration_test.h"

namespace softlookup::testing {

v1::Store StoreOf(const GoldenMemory& golden, const std::string& name) {
  static const auto& kKinds = *new std::map<std::string, v1::MemoryKind>{
      {"AVERAGE", v1::MEMORY_KIND_AVERAGE},
      {"DECAYED_SUM", v1::MEMORY_KIND_DECAYED_SUM},
      {"DECAYED_AVERAGE", v1::MEMORY_KIND_DECAYED_AVERAGE},
      {"GATED", v1::MEMORY_KIND_GATED},
      {"GATED_AVERAGE", v1::MEMORY_KIND_GATED_AVERAGE}};
  v1::Store store = StoreMessage(name, golden.key_dim, golden.value_dim);
  v1::MemorySpec* spec = store.add_memories();
  spec->set_name("m");
  spec->set_kind(kKinds.at(golden.kind));
  spec->set_decay(golden.decay);
  if (!golden.gate.empty()) *spec->mutable_gate() = Message(golden.gate, golden.key_dim + 1);
  return store;
}

void ExpectMemory(const v1::Memory& memory, const GoldenMemory& golden) {
  EXPECT_LE(RelativeError(Doubles(memory.key()), golden.expected_key), 1e-12);
  EXPECT_LE(RelativeError(Doubles(memory.value()), golden.expected_value), 1e-12);
  EXPECT_NEAR(memory.weight(), golden.expected_weight, 1e-12 * golden.expected_weight);
  EXPECT_EQ(memory.begin(), golden.begin);
  EXPECT_EQ(memory.end(), static_cast<std::uint64_t>(golden.row_count));
  EXPECT_EQ(memory.key().element_type(), v1::ELEMENT_TYPE_FLOAT64);
  EXPECT_EQ(memory.key().rows(), 1u);
  EXPECT_EQ(memory.value().cols(), static_cast<std::uint32_t>(golden.value_dim));
}

}  // namespace softlookup::testing
