// Copies of an engine that is being written to, opened and held against what it had acknowledged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/base/error.h"
#include "softlookup/engine.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup {
namespace {

using ::softlookup::testing::AppendAndWait;
using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;
using ::softlookup::testing::TemporaryDirectory;

constexpr std::int64_t kKeyDim = 96, kValueDim = 3;
constexpr std::size_t kWriters = 3;
constexpr const char* kMemories[] = {"average", "decayed"};

std::unique_ptr<Engine> OpenOrDie(const std::string& directory) {
  auto engine = Engine::Open({.thread_count = 2}, directory,
                             [](const absl::Status& damage) { ADD_FAILURE() << damage.message(); });
  EXPECT_THAT(engine, IsOk());
  return engine.ok() ? *std::move(engine) : nullptr;
}

// The rows that writer `writer` sends as its append `sequence`: who looks at one can tell which.
std::int64_t RowsOf(std::uint64_t writer, std::uint64_t sequence) {
  return static_cast<std::int64_t>(1 + (writer * 31 + sequence * 17) % 90);
}

absl::StatusOr<AppendResult> Append(Engine& engine, std::uint64_t writer, std::uint64_t sequence) {
  const std::int64_t rows = RowsOf(writer, sequence);
  std::vector<float> keys(rows * kKeyDim), values;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = 0.1f * static_cast<float>((writer * 31 + sequence * 17 + i * 7) % 101) - 3;
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    for (const std::uint64_t part : {writer, sequence, static_cast<std::uint64_t>(row)}) {
      values.push_back(static_cast<float>(part));
    }
  }
  const std::string name = absl::StrCat("w", writer);
  return AppendAndWait(engine, {.store = "s",
                                .keys = {.data = keys.data(), .rows = rows, .cols = kKeyDim},
                                .values = {.data = values.data(), .rows = rows, .cols = kValueDim},
                                .writer = name,
                                .sequence = sequence,
                                // What is not synced yet must be in a copy, too.
                                .durable = sequence % 3 == 0});
}

// Appends from several threads until it goes.
class Load {
 public:
  explicit Load(Engine& engine) {
    for (std::uint64_t writer = 0; writer < kWriters; ++writer) {
      threads_.emplace_back([this, &engine, writer] {
        for (std::uint64_t sequence = 1; !stopped(); ++sequence) {
          ASSERT_THAT(Append(engine, writer, sequence), IsOk());
          absl::MutexLock lock(&mutex_);
          acknowledged_[writer] = sequence;
          ++count_;
        }
      });
    }
  }
  ~Load() {
    {
      absl::MutexLock lock(&mutex_);
      stopped_ = true;
    }
    for (std::thread& thread : threads_) thread.join();
  }

  // The last sequence of each writer, after `count` more appends.
  std::vector<std::uint64_t> AcknowledgedAfter(std::uint64_t count) {
    absl::MutexLock lock(&mutex_);
    const std::uint64_t enough = count_ + count;
    const auto reached = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return count_ >= enough; };
    mutex_.Await(absl::Condition(&reached));
    return acknowledged_;
  }

 private:
  bool stopped() {
    absl::MutexLock lock(&mutex_);
    return stopped_;
  }

  absl::Mutex mutex_;
  std::vector<std::uint64_t> acknowledged_ ABSL_GUARDED_BY(mutex_) =
      std::vector<std::uint64_t>(kWriters);
  std::uint64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

class BackupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    engine_ = OpenOrDie(DataDirectory());
    ASSERT_THAT(engine_->CreateStore(Config()), IsOk());
  }

  static StoreConfig Config() {
    return {.name = "s",
            .key_dim = kKeyDim,
            .value_dim = kValueDim,
            .memories = {{.name = "decayed", .kind = MemoryKind::kDecayedSum, .decay = 0.999}}};
  }

  std::string DataDirectory() const { return directory_.path() + "/data"; }
  std::string CopyDirectory(int copy) const {
    return absl::StrCat(directory_.path(), "/copy", copy);
  }

  // What appends the rows are, in order: each whole, and each writer's in its order without a gap.
  static std::vector<std::pair<std::uint64_t, std::uint64_t>> AppendsIn(Engine& engine) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> appends;
    std::vector<std::uint64_t> last(kWriters);
    const auto reader = engine.ReadRows("s", {});
    EXPECT_THAT(reader, IsOk());
    std::int64_t rows_left = 0;
    for (std::vector<Row> rows = (*reader)->Next(1000); !rows.empty();
         rows = (*reader)->Next(1000)) {
      for (const Row& row : rows) {
        const auto writer = static_cast<std::uint64_t>(row.value[0]);
        const auto sequence = static_cast<std::uint64_t>(row.value[1]);
        if (rows_left == 0) {
          EXPECT_EQ(sequence, ++last.at(writer));
          appends.emplace_back(writer, sequence);
          rows_left = RowsOf(writer, sequence);
        }
        EXPECT_EQ(appends.back(), std::pair(writer, sequence));
        EXPECT_EQ(row.value[2], static_cast<float>(RowsOf(writer, sequence) - rows_left));
        --rows_left;
      }
    }
    EXPECT_EQ(rows_left, 0) << "half an append";
    return appends;
  }

  // The copy answers as an engine that these appends alone were made to.
  static void ExpectSameAsAReplay(
      Engine& copy, const std::vector<std::pair<std::uint64_t, std::uint64_t>>& appends) {
    const std::unique_ptr<Engine> replay = Engine::Create({});
    ASSERT_THAT(replay->CreateStore(Config()), IsOk());
    std::map<std::uint64_t, std::uint64_t> last;
    for (const auto& [writer, sequence] : appends) {
      ASSERT_THAT(Append(*replay, writer, sequence), IsOk());
      last[writer] = sequence;
    }
    EXPECT_EQ(copy.GetStore("s")->revision, replay->GetStore("s")->revision);
    EXPECT_EQ(copy.GetStore("s")->row_count, replay->GetStore("s")->row_count);
    for (const char* name : kMemories) {
      const auto a = copy.GetMemory("s", name, std::nullopt, std::nullopt);
      const auto b = replay->GetMemory("s", name, std::nullopt, std::nullopt);
      ASSERT_THAT(a, IsOk());
      EXPECT_EQ(a->end, b->end);
      EXPECT_EQ(a->memory.key, b->memory.key);
      EXPECT_EQ(a->memory.value, b->memory.value);
      EXPECT_EQ(a->memory.weight, b->memory.weight);
    }
    for (const auto& [writer, sequence] : last) {
      EXPECT_EQ(copy.GetWriter("s", absl::StrCat("w", writer))->last_sequence, sequence);
    }
  }

  const TemporaryDirectory directory_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(BackupTest, CopiesMadeUnderAppendsHoldAllThatWasAcknowledgedBeforeAndWholeAppendsOnly) {
  constexpr int kCopies = 4;
  std::vector<std::vector<std::uint64_t>> acknowledged;
  {
    Load load(*engine_);
    for (int copy = 0; copy < kCopies; ++copy) {
      acknowledged.push_back(load.AcknowledgedAfter(60));
      ASSERT_THAT(engine_->CopyTo(CopyDirectory(copy)), IsOk());
    }
    load.AcknowledgedAfter(60);
  }
  const auto all = AppendsIn(*engine_);
  for (int copy = 0; copy < kCopies; ++copy) {
    SCOPED_TRACE(copy);
    const std::unique_ptr<Engine> engine = OpenOrDie(CopyDirectory(copy));
    ASSERT_NE(engine, nullptr);
    const auto appends = AppendsIn(*engine);
    ASSERT_LT(appends.size(), all.size());
    EXPECT_TRUE(std::equal(appends.begin(), appends.end(), all.begin()));
    for (const auto& before : acknowledged[copy]) {
      const std::uint64_t writer = &before - acknowledged[copy].data();
      EXPECT_GE(std::count_if(appends.begin(), appends.end(),
                              [&](const auto& append) { return append.first == writer; }),
                static_cast<std::ptrdiff_t>(before));
    }
    ExpectSameAsAReplay(*engine, appends);
  }
}

TEST_F(BackupTest, ACopyAndItsOriginalGoTheirOwnWays) {
  ASSERT_THAT(Append(*engine_, 0, 1), IsOk());
  ASSERT_THAT(engine_->CopyTo(CopyDirectory(0)), IsOk());
  EXPECT_TRUE(std::filesystem::exists(DataDirectory() + "/RESERVE"));
  EXPECT_FALSE(std::filesystem::exists(CopyDirectory(0) + "/RESERVE"));
  ASSERT_THAT(Append(*engine_, 1, 1), IsOk());
  std::unique_ptr<Engine> copy = OpenOrDie(CopyDirectory(0));
  ASSERT_THAT(Append(*copy, 0, 2), IsOk());
  ASSERT_THAT(Append(*copy, 2, 1), IsOk());
  using Appends = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  for (int opened = 0; opened < 2; ++opened) {
    EXPECT_EQ(AppendsIn(*engine_), (Appends{{0, 1}, {1, 1}}));
    EXPECT_EQ(AppendsIn(*copy), (Appends{{0, 1}, {0, 2}, {2, 1}}));
    engine_ = nullptr;
    copy = nullptr;
    engine_ = OpenOrDie(DataDirectory());
    copy = OpenOrDie(CopyDirectory(0));
  }
}

TEST_F(BackupTest, ADirectoryThatIsThereIsLeftAsItIs) {
  std::filesystem::create_directory(CopyDirectory(0));
  EXPECT_THAT(engine_->CopyTo(CopyDirectory(0)),
              StatusIs(absl::StatusCode::kUnavailable, CopyDirectory(0)));
  EXPECT_TRUE(std::filesystem::is_empty(CopyDirectory(0)));
  EXPECT_THAT(Append(*engine_, 0, 1), IsOk());
}

TEST(BackupInMemoryTest, WhatIsInMemoryOnlyCannotBeCopied) {
  const TemporaryDirectory directory;
  const absl::Status status = Engine::Create({})->CopyTo(directory.path() + "/copy");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition, "not kept on disk"));
  EXPECT_EQ(ReasonOf(status), reasons::kBackupsDisabled.name);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

}  // namespace
}  // namespace softlookup
