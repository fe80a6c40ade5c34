#include "tests/faults/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {
namespace {

constexpr std::int64_t kKeyDim = 8, kValueDim = 2;

struct Rows {
  std::vector<float> keys;
  std::vector<float> values;  // The append, and the row in it.
};

Rows RowsOf(std::uint64_t append) {
  const std::uint64_t mixed = (append + 1) * 0x9e3779b97f4a7c15u;
  const std::int64_t count =
      1 + static_cast<std::int64_t>((mixed >> 40) % ((mixed >> 60) == 0 ? 600 : 24));
  Rows rows;
  for (std::int64_t row = 0; row < count; ++row) {
    for (std::int64_t i = 0; i < kKeyDim; ++i) {
      rows.keys.push_back(0.1f * static_cast<float>((mixed + 17 * row + 5 * i) % 61) - 3);
    }
    rows.values.push_back(static_cast<float>(append));
    rows.values.push_back(static_cast<float>(row));
  }
  return rows;
}

AppendRequest RequestOf(const std::string& store, const Rows& rows) {
  const auto count = static_cast<std::int64_t>(rows.values.size()) / kValueDim;
  return {.store = store,
          .keys = {.data = rows.keys.data(), .rows = count, .cols = kKeyDim},
          .values = {.data = rows.values.data(), .rows = count, .cols = kValueDim}};
}

StoreConfig ConfigOf(const std::string& store) {
  StoreConfig config;
  config.name = store;
  config.key_dim = kKeyDim;
  config.value_dim = kValueDim;
  config.memories.push_back({.name = "decayed", .kind = MemoryKind::kDecayedSum, .decay = 0.999});
  return config;
}

void ExpectSameAnswers(Engine& engine, Engine& replay, const std::string& store) {
  for (const char* name : {"average", "decayed"}) {
    const auto ours = engine.GetMemory(store, name, std::nullopt, std::nullopt);
    const auto theirs = replay.GetMemory(store, name, std::nullopt, std::nullopt);
    ASSERT_THAT(ours, IsOk());
    ASSERT_THAT(theirs, IsOk());
    EXPECT_EQ(ours->memory.key, theirs->memory.key) << name;
    EXPECT_EQ(ours->memory.value, theirs->memory.value) << name;
  }
  const std::vector<float> query = NormalFloats(kKeyDim, 1);
  const LookupRequest request{.store = store,
                              .queries = {.data = query.data(), .rows = 1, .cols = kKeyDim}};
  const auto ours = LookupAndWait(engine, request), theirs = LookupAndWait(replay, request);
  ASSERT_THAT(ours, IsOk());
  ASSERT_THAT(theirs, IsOk());
  EXPECT_EQ(ours->values, theirs->values);
}

}  // namespace

absl::Status Journal::CreateStore(Engine& engine) const {
  return engine.CreateStore(ConfigOf(store_)).status();
}

void Journal::Submit(Engine& engine, bool durable) {
  const std::uint64_t append = next_++;
  const Rows rows = RowsOf(append);
  AppendRequest request = RequestOf(store_, rows);
  request.durable = durable;
  {
    absl::MutexLock lock(&mutex_);
    outcomes_[append] = Outcome::kWaiting;
    ++waiting_;
  }
  engine.Append(request, [this, append, durable](const absl::StatusOr<AppendResult>& result) {
    absl::MutexLock lock(&mutex_);
    --waiting_;
    last_answer_ = result.status();
    outcomes_[append] = !result.ok() ? Outcome::kRefused
                        : durable    ? Outcome::kDurable
                                     : Outcome::kApplied;
  });
}

absl::Status Journal::AwaitAll() {
  const auto none_waits = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return waiting_ == 0; };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&none_waits));
  return last_answer_;
}

std::vector<std::uint64_t> Journal::AppendsIn(Engine& engine) const {
  std::vector<std::uint64_t> appends;
  auto reader = engine.ReadRows(store_, {});
  EXPECT_THAT(reader, IsOk());
  if (!reader.ok()) return appends;
  Rows expected;
  std::size_t rows_left = 0;
  for (auto rows = (*reader)->Next(500); !rows.empty(); rows = (*reader)->Next(500)) {
    for (const Row& row : rows) {
      const auto append = static_cast<std::uint64_t>(row.value[0]);
      const auto index = static_cast<std::size_t>(row.value[1]);
      if (rows_left == 0) {
        appends.push_back(append);
        expected = RowsOf(append);
        rows_left = expected.values.size() / kValueDim;
      }
      const std::size_t count = expected.values.size() / kValueDim;
      EXPECT_EQ(append, appends.back());
      EXPECT_EQ(index, count - rows_left) << "append " << append;
      if (append != appends.back() || index != count - rows_left) return appends;
      const auto key = expected.keys.begin() + static_cast<std::ptrdiff_t>(index) * kKeyDim;
      EXPECT_EQ(row.key, std::vector<float>(key, key + kKeyDim)) << "append " << append;
      --rows_left;
    }
  }
  EXPECT_EQ(rows_left, 0u) << "append " << appends.back() << " is there in part";
  return appends;
}

void Journal::Check(Engine& engine, MayLack may_lack) {
  AwaitAll().IgnoreError();
  const std::vector<std::uint64_t> appends = AppendsIn(engine);
  if (::testing::Test::HasFailure()) return;
  EXPECT_TRUE(std::is_sorted(appends.begin(), appends.end(), std::less_equal<>()))
      << "out of order, or twice";
  const std::set<std::uint64_t> there(appends.begin(), appends.end());
  {
    absl::MutexLock lock(&mutex_);
    bool suffix_began = false;
    for (auto& [append, outcome] : outcomes_) {
      const bool acknowledged = outcome == Outcome::kDurable || outcome == Outcome::kApplied;
      if (there.contains(append)) {
        // One that was refused may be back, one after what was lost may not.
        if (acknowledged) {
          EXPECT_FALSE(suffix_began) << append << " is there without those before";
        }
      } else if (acknowledged) {
        EXPECT_TRUE(outcome == Outcome::kApplied && may_lack == MayLack::kAppliedSuffix)
            << "append " << append << " is lost";
        suffix_began = true;
      }
    }
    // From now on all of it is safe, and nothing else will come back.
    outcomes_.clear();
    for (const std::uint64_t append : appends) outcomes_[append] = Outcome::kDurable;
  }
  const auto replay = Engine::Create({});
  ASSERT_THAT(CreateStore(*replay), IsOk());
  for (const std::uint64_t append : appends) {
    const Rows rows = RowsOf(append);
    ASSERT_THAT(AppendAndWait(*replay, RequestOf(store_, rows)), IsOk());
  }
  ExpectSameAnswers(engine, *replay, store_);
}

void Journal::CheckRefusedAreMissing(Engine& engine) {
  AwaitAll().IgnoreError();
  const std::vector<std::uint64_t> appends = AppendsIn(engine);
  std::vector<std::uint64_t> acknowledged;
  absl::MutexLock lock(&mutex_);
  for (const auto& [append, outcome] : outcomes_) {
    if (outcome != Outcome::kRefused) acknowledged.push_back(append);
  }
  EXPECT_EQ(appends, acknowledged);
}

std::uint64_t Journal::acknowledged_count() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<std::uint64_t>(
      std::count_if(outcomes_.begin(), outcomes_.end(), [](const auto& entry) {
        return entry.second == Outcome::kDurable || entry.second == Outcome::kApplied;
      }));
}

}  // namespace softlookup::testing
