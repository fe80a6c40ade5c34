// A file system that really fills, under RocksDB's own file access.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/engine/open_on_log.h"
#include "core/storage/rocksdb_log.h"
#include "softlookup/engine.h"
#include "tests/faults/journal.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

std::unique_ptr<Engine> OpenOrFail(const std::string& directory) {
  auto engine = Engine::Open({}, directory,
                             [](const absl::Status& damage) { ADD_FAILURE() << damage.message(); });
  EXPECT_THAT(engine, IsOk());
  return engine.ok() ? *std::move(engine) : nullptr;
}

// A file system of 300 MB. The mount is seen, and lives, only in this process.
class FullDiskTest : public ::testing::Test {
 protected:
  // Before RocksDB starts threads, which keep the mounts that they see.
  static void SetUpTestSuite() {
    may_mount_ = unshare(CLONE_NEWNS) == 0 &&
                 mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  }
  void SetUp() override {
    if (!may_mount_ || mount("tmpfs", directory_.path().c_str(), "tmpfs", 0, "size=300m") != 0) {
      GTEST_SKIP() << "this user may not mount a file system";
    }
    is_mounted_ = true;
  }
  void TearDown() override {
    if (is_mounted_) {
      EXPECT_EQ(umount(directory_.path().c_str()), 0);
    }
  }

  // Takes all room that is left.
  void FillUp() {
    std::ofstream file(directory_.path() + "/filler", std::ios::binary);
    const std::string some(4096, 'x');
    while (file.write(some.data(), static_cast<std::streamsize>(some.size())).flush()) {
    }
  }

  static inline bool may_mount_ = false;

  const TemporaryDirectory directory_;
  const std::string data_ = directory_.path() + "/data";
  bool is_mounted_ = false;
};

// Appends to a store of this name, which it makes, until that is refused.
absl::Status AppendUntilRefused(Engine& engine, const std::string& name) {
  StoreConfig config;
  config.name = name;
  config.key_dim = config.value_dim = 128;
  EXPECT_THAT(engine.CreateStore(config), IsOk());
  const std::vector<float> floats = NormalFloats(1000 * 128, 1);
  const MatrixView rows{.data = floats.data(), .rows = 1000, .cols = 128};
  for (;;) {
    const auto result = AppendAndWait(engine, {.store = name, .keys = rows, .values = rows});
    if (!result.ok()) return result.status();
  }
}

// What a deletion needs was put aside.
TEST_F(FullDiskTest, StoresAreDeletedThoughNothingIsLeftAndThatMakesRoom) {
  for (const auto& [restarts, replaces] :
       {std::pair(false, false), std::pair(true, false), std::pair(false, true)}) {
    SCOPED_TRACE(absl::StrCat("restarts: ", restarts, ", replaces: ", replaces));
    std::filesystem::remove_all(data_);
    std::filesystem::remove(directory_.path() + "/filler");
    CommitLog* log = nullptr;
    const auto open = [&]() -> std::unique_ptr<Engine> {
      auto opened = OpenRocksdbLog(data_, RocksdbAccess::kWrite, rocksdb::Env::Default());
      EXPECT_THAT(opened, IsOk());
      if (!opened.ok()) return nullptr;
      log = opened->get();
      auto engine = OpenOnLog({}, *std::move(opened), [](const absl::Status& damage) {
        ADD_FAILURE() << damage.message();
      });
      EXPECT_THAT(engine, IsOk());
      return engine.ok() ? *std::move(engine) : nullptr;
    };
    std::filesystem::create_directories(data_);
    std::unique_ptr<Engine> engine = open();
    ASSERT_NE(engine, nullptr);
    EXPECT_TRUE(std::filesystem::exists(data_ + "/RESERVE"));
    Journal journal("small");
    ASSERT_THAT(journal.CreateStore(*engine), IsOk());
    for (int i = 0; i < 100; ++i) journal.Submit(*engine, /*durable=*/true);
    ASSERT_THAT(journal.AwaitAll(), IsOk());
    if (replaces) {
      ASSERT_THAT(engine->CreateStore({.name = "empty", .key_dim = 1, .value_dim = 1}), IsOk());
    }
    const absl::Status refused = AppendUntilRefused(*engine, "large");
    EXPECT_EQ(ReasonOf(refused), reasons::kStorageFailed.name) << refused;
    FillUp();
    journal.Submit(*engine, /*durable=*/true);
    EXPECT_THAT(journal.AwaitAll(),
                StatusIs(absl::StatusCode::kUnavailable, "0 MB are free, and 139 MB are needed"));
    if (restarts) {
      engine = nullptr;
      FillUp();
      engine = open();
      ASSERT_NE(engine, nullptr);
      EXPECT_TRUE(engine->stats().log_failed);
      journal.Check(*engine, Journal::MayLack::kNothing);
    }

    if (replaces) {
      EXPECT_THAT(engine->RenameStore({.name = "empty", .new_name = "large", .replace = true}),
                  IsOk());
      EXPECT_EQ(engine->GetStore("large")->row_count, 0u);
    } else {
      EXPECT_THAT(engine->DeleteStore("large"), IsOk());
      EXPECT_EQ(ReasonOf(engine->GetStore("large").status()), "STORE_NOT_FOUND");
    }
    log->AwaitReclaimed();
    journal.Submit(*engine, /*durable=*/true);
    EXPECT_THAT(journal.AwaitAll(), IsOk());
    EXPECT_FALSE(engine->stats().log_failed);
    EXPECT_TRUE(std::filesystem::exists(data_ + "/RESERVE"));
    journal.CheckRefusedAreMissing(*engine);
    engine = nullptr;
    engine = open();
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(engine->ListStores("", "", 10)->stores.size(), replaces ? 2u : 1u);
    journal.Check(*engine, Journal::MayLack::kNothing);
  }
}

TEST_F(FullDiskTest, RefusesWritesUntilThereIsRoomAndLosesNothing) {
  const std::string data = data_, filler = directory_.path() + "/filler";
  {
    std::unique_ptr<Engine> engine = OpenOrFail(data);
    ASSERT_NE(engine, nullptr);
    Journal journal("small");
    ASSERT_THAT(journal.CreateStore(*engine), IsOk());
    for (int i = 0; i < 100; ++i) journal.Submit(*engine, /*durable=*/i % 2 == 0);
    EXPECT_THAT(journal.AwaitAll(), IsOk());

    // 74 MB are left: enough for a whole write-ahead log, not for the table that is made of it.
    std::ofstream(filler) << std::string(std::size_t{226} << 20, 'x');
    StoreConfig config;
    config.name = "large";
    config.key_dim = config.value_dim = 128;
    ASSERT_THAT(engine->CreateStore(config), IsOk());
    const std::vector<float> floats = NormalFloats(1000 * 128, 1);
    const MatrixView rows{.data = floats.data(), .rows = 1000, .cols = 128};
    absl::Status status;
    std::uint64_t row_count = 0;
    while (status.ok()) {
      const auto result = AppendAndWait(*engine, {.store = "large", .keys = rows, .values = rows});
      status = result.status();
      if (result.ok()) row_count = result->row_count;
    }
    EXPECT_EQ(ReasonOf(status), reasons::kStorageFailed.name) << status;
    EXPECT_TRUE(RetryAfterOf(status).has_value());
    EXPECT_GT(row_count, 60'000u);
    journal.Submit(*engine, /*durable=*/true);
    EXPECT_EQ(ReasonOf(journal.AwaitAll()), reasons::kStorageFailed.name);
    EXPECT_TRUE(engine->stats().log_failed);
    EXPECT_THAT(
        LookupAndWait(*engine, {.store = "large",
                                .queries = {.data = floats.data(), .rows = 1, .cols = 128}}),
        IsOk());

    std::filesystem::remove(filler);
    journal.Submit(*engine, /*durable=*/true);
    EXPECT_THAT(journal.AwaitAll(), IsOk());
    EXPECT_FALSE(engine->stats().log_failed);
    journal.CheckRefusedAreMissing(*engine);
    EXPECT_EQ(engine->GetStore("large")->row_count, row_count);
    engine = nullptr;
    engine = OpenOrFail(data);
    ASSERT_NE(engine, nullptr);
    journal.Check(*engine, Journal::MayLack::kNothing);
    EXPECT_EQ(engine->GetStore("large")->row_count, row_count);
  }
}

}  // namespace
}  // namespace softlookup::testing
