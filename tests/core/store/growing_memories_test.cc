#include "core/store/growing_memories.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "core/store/store_memories.h"

namespace softlookup {
namespace {

const StoreConfig& ForgetfulConfig() {
  static const auto& config =
      *new StoreConfig{.name = "s",
                       .key_dim = 2,
                       .value_dim = 1,
                       .memories = {{.name = "d", .kind = MemoryKind::kDecayedSum, .decay = 0.5}}};
  return config;
}

// Adds rows of which row j's components are all j.
void AddNumbered(GrowingMemories& memories, std::int64_t first, std::int64_t count) {
  for (std::int64_t j = first; j < first + count; ++j) {
    const float x = static_cast<float>(j), key[2] = {x, x};
    memories.Add({.key = key, .value = &x}, ForgetfulConfig());
  }
}

double AverageIn(const MemorySet* state) {
  return MemoriesView(state, ForgetfulConfig()).Read(0).value[0];
}

TEST(GrowingMemoriesTest, ThereIsNoStateBeforeTheFirstRow) {
  const GrowingMemories memories;
  EXPECT_EQ(memories.state(), nullptr);
  EXPECT_EQ(memories.CopyState(), nullptr);
  EXPECT_EQ(memories.bytes(), 0);
}

TEST(GrowingMemoriesTest, EachRowIsAddedToAllMemoriesOfTheStore) {
  GrowingMemories memories;
  AddNumbered(memories, 0, 100);
  MemorySet expected = MemorySetOf(ForgetfulConfig());
  for (std::int64_t j = 0; j < 100; ++j) {
    const float x = static_cast<float>(j), key[2] = {x, x};
    expected.Add(key, 1, &x);
  }
  EXPECT_EQ(memories.state()->Save(), expected.Save());
  EXPECT_EQ(memories.bytes(), expected.bytes());
}

TEST(GrowingMemoriesTest, ACopiedStateStaysWhatItWas) {
  GrowingMemories memories;
  AddNumbered(memories, 0, 100);
  const std::shared_ptr<const MemorySet> state = memories.CopyState();
  AddNumbered(memories, 100, 100);
  EXPECT_EQ(AverageIn(state.get()), 99 / 2.0);
  EXPECT_EQ(AverageIn(memories.state()), 199 / 2.0);
}

TEST(GrowingMemoriesTest, ACopyThatIsPutBackIsASavepoint) {
  GrowingMemories memories;
  const GrowingMemories empty = memories;
  AddNumbered(memories, 0, 100);
  const GrowingMemories savepoint = memories;
  EXPECT_EQ(savepoint.state(), memories.state()) << "a savepoint costs no copy of the memories";
  AddNumbered(memories, 5000, 100);
  EXPECT_EQ(AverageIn(savepoint.state()), 99 / 2.0);
  for (int time = 0; time < 2; ++time) {
    memories = savepoint;
    EXPECT_EQ(AverageIn(memories.state()), 99 / 2.0);
    AddNumbered(memories, 100, 100);
    EXPECT_EQ(AverageIn(memories.state()), 199 / 2.0);
  }
  memories = empty;
  EXPECT_EQ(memories.state(), nullptr);
}

TEST(GrowingMemoriesTest, ItGoesOnFromAStateThatStaysWhatItWas) {
  GrowingMemories written;
  AddNumbered(written, 0, 100);
  const std::shared_ptr<const MemorySet> state = written.CopyState();
  GrowingMemories loaded(*state);
  AddNumbered(loaded, 100, 50);
  AddNumbered(written, 100, 50);
  EXPECT_EQ(loaded.state()->Save(), written.state()->Save());
  EXPECT_EQ(AverageIn(state.get()), 99 / 2.0);
}

}  // namespace
}  // namespace softlookup
