// A file system that really fills, under RocksDB's own file access.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
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

TEST(FullDiskTest, RefusesWritesUntilThereIsRoomAndLosesNothing) {
  const TemporaryDirectory directory;
  // The mount is seen, and lives, only here.
  if (unshare(CLONE_NEWNS) != 0 ||
      mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("tmpfs", directory.path().c_str(), "tmpfs", 0, "size=300m") != 0) {
    GTEST_SKIP() << "this user may not mount a file system";
  }
  const std::string data = directory.path() + "/data", filler = directory.path() + "/filler";
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
  EXPECT_EQ(umount(directory.path().c_str()), 0);
}

}  // namespace
}  // namespace softlookup::testing
