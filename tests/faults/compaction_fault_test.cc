// Stores are compacted on a disk that fails, and on one that loses power: each row that was
// acknowledged is there when the store is opened again, whatever was compacted. A failure prints
// SOFTLOOKUP_TEST_SEED=N; with that in the environment the run begins with it, as far as threads
// take the same turns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/engine/open_on_log.h"
#include "core/storage/rocksdb_log.h"
#include "tests/faults/cycles.h"
#include "tests/faults/faulty_env.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/sanitized.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

using Fault = FaultyFileSystem::Fault;

// Rows of a block.
constexpr std::uint64_t kBlock = 1024;

// What a store has, kept outside. The row at position p has the value ValueAt(p).
struct Model {
  std::uint64_t row_count = 0;
  std::map<std::uint64_t, std::optional<std::uint64_t>> live;  // Ids by position.
};

float ValueAt(std::uint64_t position) { return static_cast<float>(position % 10'007); }

class CompactionFaultTest : public ::testing::Test {
 protected:
  void Open() {
    engine_ = nullptr;
    auto log = OpenRocksdbLog(directory_.path() + "/data", RocksdbAccess::kWrite, env_.get());
    ASSERT_THAT(log, IsOk());
    auto engine = OpenOnLog({.thread_count = 1}, *std::move(log),
                            [](const absl::Status& damage) { ADD_FAILURE() << damage.ToString(); });
    ASSERT_THAT(engine, IsOk());
    engine_ = *std::move(engine);
  }
  void Create() {
    ASSERT_THAT(engine_->CreateStore({.name = "s", .key_dim = 1, .value_dim = 1}), IsOk());
    acknowledged_ = tried_ = {};
  }

  // The writes set tried_ to what the store has if they are made. If they are acknowledged,
  // acknowledged_ is the same.

  absl::Status Append(std::uint64_t count, bool has_ids, bool durable = true) {
    std::vector<float> values;
    std::vector<std::uint64_t> ids;
    tried_ = acknowledged_;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t position = tried_.row_count++;
      values.push_back(ValueAt(position));
      if (has_ids) ids.push_back(1'000'000 + position);
      tried_.live[position] = has_ids ? std::optional<std::uint64_t>(ids.back()) : std::nullopt;
    }
    const MatrixView rows{
        .data = values.data(), .rows = static_cast<std::int64_t>(count), .cols = 1};
    return Acknowledge(
        AppendAndWait(*engine_,
                      {.store = "s", .keys = rows, .values = rows, .ids = ids, .durable = durable})
            .status());
  }
  absl::Status Delete(std::uint64_t begin, std::uint64_t end) {
    tried_ = acknowledged_;
    tried_.live.erase(tried_.live.lower_bound(begin), tried_.live.lower_bound(end));
    return Acknowledge(engine_->DeleteRows("s", {.begin = begin, .end = end}).status());
  }
  absl::Status Compact() {
    tried_ = acknowledged_;
    return engine_->CompactStore({.store = "s", .end_memories = true}, CancelToken()).status();
  }
  absl::Status Acknowledge(absl::Status status) {
    if (status.ok()) acknowledged_ = tried_;
    return status;
  }

  // The store has what `model` says, and the memory over all rows ever appended.
  void CheckRows(const Model& model) {
    const auto info = engine_->GetStore("s");
    ASSERT_THAT(info, IsOk());
    ASSERT_EQ(info->row_count, model.row_count);
    ASSERT_EQ(info->live_row_count, model.live.size());
    const auto reader = engine_->ReadRows("s", {});
    ASSERT_THAT(reader, IsOk());
    auto expected = model.live.begin();
    for (;;) {
      const std::vector<Row> rows = (*reader)->Next(1000);
      if (rows.empty()) break;
      for (const Row& row : rows) {
        ASSERT_NE(expected, model.live.end()) << "a row too many at " << row.position;
        ASSERT_EQ(row.position, expected->first);
        ASSERT_EQ(row.id, expected->second) << row.position;
        ASSERT_EQ(row.key[0], ValueAt(row.position));
        ASSERT_EQ(row.value[0], ValueAt(row.position));
        ++expected;
      }
    }
    ASSERT_EQ(expected, model.live.end());
    if (model.row_count == 0) return;
    const auto memory = engine_->GetMemory("s", "", std::nullopt, std::nullopt);
    ASSERT_THAT(memory, IsOk());
    double sum = 0;
    for (std::uint64_t p = 0; p < model.row_count; ++p) sum += ValueAt(p);
    const double average = sum / static_cast<double>(model.row_count);
    ASSERT_NEAR(memory->memory.value[0], average, 1e-5 * (1 + average));
  }

  // After a fault and before the next start: what was not acknowledged does not show.
  void CheckBefore() {
    const auto info = engine_->GetStore("s");
    ASSERT_THAT(info, IsOk());
    ASSERT_NO_FATAL_FAILURE(CheckRows(acknowledged_));
  }
  // Opens the store again. It has all that was acknowledged, and the last write whole or not at
  // all.
  void Restart(Fault fault, std::mt19937_64& random) {
    engine_ = nullptr;
    if (fault == Fault::kPowerCut) files_->LosePower(random);
    files_->Heal();
    ASSERT_NO_FATAL_FAILURE(Open());
    const auto info = engine_->GetStore("s");
    ASSERT_THAT(info, IsOk());
    const bool has_last =
        info->row_count == tried_.row_count && info->live_row_count == tried_.live.size();
    if (has_last) acknowledged_ = tried_;
    ASSERT_NO_FATAL_FAILURE(CheckRows(acknowledged_));
  }

  // Appends, deletes and compacts until a call of the disk fails.
  void WriteUntilAFault(std::mt19937_64& random) {
    const auto number = [&](std::uint64_t count) { return random() % count; };
    while (!files_->has_failed()) {
      const std::uint64_t what = number(10), count = acknowledged_.row_count;
      if (what < 4 || count == 0) {
        (void)Append(1 + number(900), number(2) == 0);
      } else if (what < 7) {
        const std::uint64_t begin = number(count);
        (void)Delete(begin, begin + 1 + number(count - begin));
      } else {
        compactions_ += Compact().ok() ? 1 : 0;
      }
    }
  }
  void RunWrites(Fault fault, int cycles) {
    ASSERT_NO_FATAL_FAILURE(Open());
    ASSERT_NO_FATAL_FAILURE(Create());
    for (int cycle = 0; cycle < cycles; ++cycle) {
      SCOPED_TRACE(absl::StrCat("SOFTLOOKUP_TEST_SEED=", FirstSeed() + cycle));
      std::mt19937_64 random(FirstSeed() + cycle);
      files_->FailAt(fault, 1 + static_cast<std::int64_t>(random() % 60), /*stays=*/true);
      WriteUntilAFault(random);
      ASSERT_NO_FATAL_FAILURE(CheckBefore());
      ASSERT_NO_FATAL_FAILURE(Restart(fault, random));
      if (cycle % 20 == 19) {  // Not larger and larger.
        ASSERT_THAT(engine_->DeleteStore("s"), IsOk());
        ASSERT_NO_FATAL_FAILURE(Create());
      }
    }
    std::cout << cycles << " faults, " << compactions_ << " whole compactions\n";
  }

  // Compacts a store of more blocks than one write compacts, with a fault anywhere in that.
  void RunLongCompactions(Fault fault, int cycles) {
    constexpr std::uint64_t kBlocks = kSanitized ? 24 : 40;
    int stopped = 0;
    ASSERT_NO_FATAL_FAILURE(Open());
    for (int cycle = 0; cycle < cycles; ++cycle) {
      SCOPED_TRACE(absl::StrCat("SOFTLOOKUP_TEST_SEED=", FirstSeed() + cycle));
      std::mt19937_64 random(FirstSeed() + cycle);
      ASSERT_NO_FATAL_FAILURE(Create());
      // In appends of all sizes, of which some have ids.
      while (acknowledged_.row_count < kBlocks * kBlock) {
        ASSERT_THAT(Append(1 + random() % 3000, random() % 2 == 0, /*durable=*/false), IsOk());
      }
      for (std::uint64_t block = 0; block < kBlocks; ++block) {
        if (random() % 5 == 0) continue;
        const std::uint64_t first = block * kBlock + random() % 200;
        ASSERT_THAT(Delete(first, first + 800), IsOk());
      }
      files_->FailAt(fault, 1 + static_cast<std::int64_t>(random() % 10), /*stays=*/true);
      stopped += Compact().ok() ? 0 : 1;
      ASSERT_NO_FATAL_FAILURE(CheckBefore());
      ASSERT_NO_FATAL_FAILURE(Restart(fault, random));
      // The next one does the rest.
      ASSERT_THAT(Compact(), IsOk());
      ASSERT_NO_FATAL_FAILURE(CheckRows(acknowledged_));
      ASSERT_NO_FATAL_FAILURE(Open());
      ASSERT_NO_FATAL_FAILURE(CheckRows(acknowledged_));
      const auto nothing = engine_->CompactStore({.store = "s"}, CancelToken());
      ASSERT_THAT(nothing, IsOk());
      EXPECT_EQ(nothing->block_count, 0u);
      ASSERT_THAT(engine_->DeleteStore("s"), IsOk());
    }
    std::cout << cycles << " faults, " << stopped << " stopped a compaction\n";
  }

  TemporaryDirectory directory_;
  const std::shared_ptr<FaultyFileSystem> files_ = std::make_shared<FaultyFileSystem>();
  const std::unique_ptr<rocksdb::Env> env_ = MakeEnv(files_);
  std::unique_ptr<Engine> engine_;
  Model acknowledged_;
  Model tried_;  // With the last write, acknowledged or not.
  int compactions_ = 0;
};

TEST_F(CompactionFaultTest, APowerCutAmongWritesLosesNoAcknowledgedRow) {
  RunWrites(Fault::kPowerCut, Cycles(40, 500));
}

TEST_F(CompactionFaultTest, AFailedWriteAmongWritesLosesNoAcknowledgedRow) {
  RunWrites(Fault::kWriteFails, Cycles(20, 300));
}

TEST_F(CompactionFaultTest, AFailedSyncAmongWritesLosesNoAcknowledgedRow) {
  RunWrites(Fault::kSyncFails, Cycles(20, 300));
}

TEST_F(CompactionFaultTest, APowerCutWithinALongCompactionLosesNoRow) {
  RunLongCompactions(Fault::kPowerCut, Cycles(24, 300));
}

TEST_F(CompactionFaultTest, AFailedWriteWithinALongCompactionLosesNoRow) {
  RunLongCompactions(Fault::kWriteFails, Cycles(12, 150));
}

TEST_F(CompactionFaultTest, AFailedReadWithinALongCompactionLosesNoRow) {
  RunLongCompactions(Fault::kReadFails, Cycles(8, 100));
}

}  // namespace
}  // namespace softlookup::testing
