// What a store takes after a compaction: little more than a store of the rows that are left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/base/cancellation.h"
#include "core/engine/open_on_log.h"
#include "core/storage/rocksdb_log.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/sanitized.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kDim = 64;
constexpr std::int64_t kAppendRows = 1'000;
// Rows of the store before any is deleted. In the long tests, those that the feature was made for.
const std::int64_t kRows = std::getenv("SOFTLOOKUP_LONG_TESTS") == nullptr ? 100'000 : 1'000'000;
constexpr const char* kStore = "s";

// An engine, and the log that it is on.
class OpenEngine {
 public:
  explicit OpenEngine(const std::string& directory) : directory_(directory) {
    fs::create_directories(directory);
    auto log = OpenRocksdbLog(directory, RocksdbAccess::kWrite, rocksdb::Env::Default());
    EXPECT_THAT(log, IsOk());
    log_ = log->get();
    auto engine = OpenOnLog({.thread_count = 2}, *std::move(log),
                            [](const absl::Status& damage) { ADD_FAILURE() << damage; });
    EXPECT_THAT(engine, IsOk());
    engine_ = *std::move(engine);
  }

  Engine& operator*() const { return *engine_; }
  Engine* operator->() const { return engine_.get(); }
  std::int64_t ram() const {
    return static_cast<std::int64_t>(engine_->GetStore(kStore)->byte_size);
  }
  // Waits until what can be freed of the disk is free.
  std::int64_t disk() const {
    log_->AwaitReclaimed();
    std::int64_t bytes = 0;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      if (entry.path().filename() != "RESERVE") {
        bytes += static_cast<std::int64_t>(entry.file_size());
      }
    }
    return bytes;
  }

 private:
  const std::string directory_;
  CommitLog* log_ = nullptr;  // The engine's.
  std::unique_ptr<Engine> engine_;
};

void Create(Engine& engine) {
  ASSERT_THAT(engine.CreateStore({.name = kStore, .key_dim = kDim, .value_dim = kDim}), IsOk());
}

// Appends one row for each of `ids`, in random numbers that the id alone decides.
void Append(Engine& engine, const std::vector<std::uint64_t>& ids) {
  for (std::size_t begin = 0; begin < ids.size(); begin += kAppendRows) {
    const std::size_t end = std::min(begin + kAppendRows, ids.size());
    std::vector<float> floats;
    for (std::size_t i = begin; i < end; ++i) {
      std::minstd_rand random(static_cast<std::uint32_t>(ids[i] + 1));
      for (std::int64_t c = 0; c < kDim; ++c) {
        floats.push_back(static_cast<float>(random() % 2001) / 1000 - 1);
      }
    }
    const MatrixView rows{
        .data = floats.data(), .rows = static_cast<std::int64_t>(end - begin), .cols = kDim};
    ASSERT_THAT(AppendAndWait(engine, {.store = kStore,
                                       .keys = rows,
                                       .values = rows,
                                       .ids = absl::MakeConstSpan(ids).subspan(begin, end - begin),
                                       .on_conflict = OnConflict::kReplace,
                                       .durable = false}),
                IsOk());
  }
}

void Delete(Engine& engine, const std::vector<std::uint64_t>& ids) {
  for (std::size_t begin = 0; begin < ids.size(); begin += kAppendRows) {
    RowFilter filter;
    filter.ids.assign(ids.begin() + begin, ids.begin() + std::min(begin + kAppendRows, ids.size()));
    ASSERT_THAT(engine.DeleteRows(kStore, filter), IsOk());
  }
}

std::vector<float> Answer(Engine& engine) {
  const std::vector<float> queries = NormalFloats(4 * kDim, 3);
  auto result = LookupAndWait(
      engine, {.store = kStore, .queries = {.data = queries.data(), .rows = 4, .cols = kDim}});
  EXPECT_THAT(result, IsOk());
  return result.ok() ? std::move(result->values) : std::vector<float>();
}

// Bytes of RAM of this process.
std::int64_t ResidentBytes() {
  long pages = 0, resident = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  EXPECT_EQ(std::fscanf(file, "%ld %ld", &pages, &resident), 2);
  std::fclose(file);
  return resident * ::sysconf(_SC_PAGESIZE);
}

// Of the rows, 45 % are deleted and 45 % replaced, at random. So of every block of the first rows,
// about a tenth is left.
TEST(CompactedSizeTest, IsLittleMoreThanThatOfAStoreOfTheRest) {
  const TemporaryDirectory directory;
  std::vector<std::uint64_t> ids(static_cast<std::size_t>(kRows));
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<std::uint64_t> shuffled = ids;
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(1));
  const auto share = static_cast<std::ptrdiff_t>(ids.size()) * 45 / 100;
  const std::vector<std::uint64_t> deleted(shuffled.begin(), shuffled.begin() + share);
  const std::vector<std::uint64_t> replaced(shuffled.begin() + share, shuffled.begin() + 2 * share);
  const std::vector<std::uint64_t> rest(shuffled.begin() + share, shuffled.end());

  std::int64_t rest_ram = 0, rest_disk = 0;
  const std::string rest_directory = directory.path() + "/rest";
  {
    const OpenEngine engine(rest_directory);
    Create(*engine);
    Append(*engine, rest);
    rest_ram = engine.ram();
  }
  rest_disk = OpenEngine(rest_directory).disk();

  const std::string data = directory.path() + "/data";
  std::vector<float> answer;
  {
    const OpenEngine engine(data);
    Create(*engine);
    Append(*engine, ids);
    Delete(*engine, deleted);
    Append(*engine, replaced);
    answer = Answer(*engine);
    const std::int64_t ram = engine.ram(), resident = ResidentBytes();
    EXPECT_GT(ram, 2 * rest_ram);
    const auto compacted =
        engine->CompactStore({.store = kStore, .end_memories = true}, CancelToken());
    ASSERT_THAT(compacted, IsOk());
    // The block in which the first rows end has many live ones, and keeps all.
    EXPECT_GT(static_cast<std::int64_t>(compacted->dropped_rows), 2 * share - 1'024);
    EXPECT_LE(static_cast<double>(engine.ram()), 1.2 * static_cast<double>(rest_ram));
    EXPECT_EQ(Answer(*engine), answer);
    // The allocator may keep a part of what is freed, and ASan keeps nearly all for a while.
    if (!kSanitized) {
      const std::int64_t freed = ram - engine.ram();
      EXPECT_LE(ResidentBytes(), resident - freed * 3 / 4);
    }
    std::printf("bytes of RAM: %ld, %ld compacted, %ld of the rest; resident: %ld, %ld\n", ram,
                engine.ram(), rest_ram, resident, ResidentBytes());
    EXPECT_LE(static_cast<double>(engine.disk()), 1.2 * static_cast<double>(rest_disk));
  }
  const OpenEngine engine(data);
  EXPECT_LE(static_cast<double>(engine.ram()), 1.2 * static_cast<double>(rest_ram));
  EXPECT_LE(static_cast<double>(engine.disk()), 1.2 * static_cast<double>(rest_disk));
  std::printf("bytes on disk: %ld compacted, %ld of the rest\n", engine.disk(), rest_disk);
  EXPECT_EQ(Answer(*engine), answer);
}

}  // namespace
}  // namespace softlookup::testing
