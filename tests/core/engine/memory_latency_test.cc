// Reads memories as of any append index, and prints how long that takes. No time fails the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <random>
#include <vector>

#include "absl/time/clock.h"
#include "softlookup/engine.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/golden.h"
#include "tests/testing/random.h"
#include "tests/testing/sanitized.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::kSanitized;
using ::softlookup::testing::NormalFloats;
using ::softlookup::testing::RelativeError;

constexpr std::int64_t kRows = kSanitized ? 10'000 : 1'000'000;
constexpr std::int64_t kBatchRows = kSanitized ? 5'000 : 50'000;
constexpr std::int64_t kDim = 64;  // Of keys and of values.
constexpr double kDecay = 0.999;
constexpr int kReads = 200;    // Of each memory.
constexpr int kCompared = 10;  // Of these.

struct NamedKind {
  const char* name;
  MemoryKind kind;
};
constexpr std::array<NamedKind, 6> kMemories = {{{"average", MemoryKind::kAverage},  // Built in.
                                                 {"declared_average", MemoryKind::kAverage},
                                                 {"decayed_sum", MemoryKind::kDecayedSum},
                                                 {"decayed_average", MemoryKind::kDecayedAverage},
                                                 {"gated", MemoryKind::kGated},
                                                 {"gated_average", MemoryKind::kGatedAverage}}};

// Forgets little, and as much as the key says.
std::vector<float> Gate() {
  std::vector<float> gate = NormalFloats(kDim + 1, 1, 0.1);
  gate[0] = 3;
  return gate;
}

StoreConfig Config() {
  StoreConfig config{.name = "s", .key_dim = kDim, .value_dim = kDim};
  for (const auto& [name, kind] : kMemories) {
    if (name == kAverageMemory) continue;
    MemorySpec& spec = config.memories.emplace_back(MemorySpec{.name = name, .kind = kind});
    if (kind == MemoryKind::kDecayedSum || kind == MemoryKind::kDecayedAverage) spec.decay = kDecay;
    if (kind == MemoryKind::kGated || kind == MemoryKind::kGatedAverage) spec.gate = Gate();
  }
  return config;
}

// m = keep m + x over the rows so far.
struct Recurrence {
  MemoryValue sum{.key = std::vector<double>(kDim), .value = std::vector<double>(kDim)};

  void Add(double keep, const float* key, const float* value) {
    for (std::int64_t i = 0; i < kDim; ++i) sum.key[i] = keep * sum.key[i] + key[i];
    for (std::int64_t i = 0; i < kDim; ++i) sum.value[i] = keep * sum.value[i] + value[i];
    sum.weight = keep * sum.weight + 1;
  }
};

// Every kind of memory by its definition, one row after the other in float64.
class Replay {
 public:
  void Add(const float* key, const float* value) {
    double activation = gate_[0];
    for (std::int64_t i = 0; i < kDim; ++i) activation += double{gate_[i + 1]} * key[i];
    all_.Add(1, key, value);
    decayed_.Add(kDecay, key, value);
    gated_.Add(1 / (1 + std::exp(-activation)), key, value);
  }

  MemoryValue Of(MemoryKind kind) const {
    const bool gated = kind == MemoryKind::kGated || kind == MemoryKind::kGatedAverage;
    MemoryValue memory = (kind == MemoryKind::kAverage ? all_ : gated ? gated_ : decayed_).sum;
    if (kind == MemoryKind::kDecayedSum || kind == MemoryKind::kGated) return memory;
    for (double& component : memory.key) component /= memory.weight;
    for (double& component : memory.value) component /= memory.weight;
    return memory;
  }

 private:
  std::vector<float> gate_ = Gate();
  Recurrence all_, decayed_, gated_;
};

TEST(MemoryLatencyTest, AMemoryAsOfAnyOfAMillionRowsIsRight) {
  std::mt19937_64 generator(1);
  std::uniform_int_distribution<std::uint64_t> any_end(1, kRows);
  std::vector<std::vector<std::uint64_t>> ends(kMemories.size());
  std::map<std::uint64_t, Replay> expected;
  for (std::vector<std::uint64_t>& reads : ends) {
    for (int i = 0; i < kReads; ++i) reads.push_back(any_end(generator));
    for (int i = 0; i < kCompared; ++i) expected[reads[i]];
  }

  const auto engine = Engine::Create({});
  ASSERT_THAT(engine->CreateStore(Config()), IsOk());
  Replay replay;
  std::vector<float> keys(kBatchRows * kDim), values(kBatchRows * kDim);
  for (std::int64_t row_count = 0; row_count < kRows;) {
    for (std::vector<float>* floats : {&keys, &values}) {
      for (float& component : *floats) {  // In [-1, 1].
        component = static_cast<float>(static_cast<std::int64_t>(generator())) * 0x1p-63f;
      }
    }
    ASSERT_THAT(
        softlookup::testing::AppendAndWait(*engine, {.store = "s",
                                                     .keys = {keys.data(), kBatchRows, kDim},
                                                     .values = {values.data(), kBatchRows, kDim}}),
        IsOk());
    for (std::int64_t i = 0; i < kBatchRows; ++i) {
      replay.Add(&keys[i * kDim], &values[i * kDim]);
      ++row_count;
      if (const auto found = expected.find(row_count); found != expected.end()) {
        found->second = replay;
      }
    }
  }

  for (std::size_t m = 0; m < kMemories.size(); ++m) {
    const auto& [name, kind] = kMemories[m];
    SCOPED_TRACE(name);
    std::vector<absl::Duration> times;
    for (const std::uint64_t end : ends[m]) {
      const absl::Time start = absl::Now();
      const auto memory = engine->GetMemory("s", name, std::nullopt, end);
      times.push_back(absl::Now() - start);
      ASSERT_THAT(memory, IsOk());
      const auto found = expected.find(end);
      if (found == expected.end()) continue;
      const MemoryValue right = found->second.Of(kind);
      EXPECT_LE(RelativeError(memory->memory.key, right.key), 1e-9) << "as of " << end;
      EXPECT_LE(RelativeError(memory->memory.value, right.value), 1e-9) << "as of " << end;
      EXPECT_NEAR(memory->memory.weight, right.weight, 1e-9 * right.weight) << "as of " << end;
    }
    std::sort(times.begin(), times.end());
    const absl::Duration median = times[kReads / 2], p99 = times[kReads * 99 / 100];
    std::printf("%-16s of %d rows: median %.3f ms, p99 %.3f ms\n", name, static_cast<int>(kRows),
                absl::ToDoubleMilliseconds(median), absl::ToDoubleMilliseconds(p99));
  }
}

}  // namespace
}  // namespace softlookup
