// What stores take of the process's memory, as the kernel counts it.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "softlookup/engine.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::AppendAndWait;
using ::softlookup::testing::IsOk;
using ::softlookup::testing::NormalFloats;

std::int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t total_pages = 0, resident_pages = 0;
  statm >> total_pages >> resident_pages;
  return resident_pages * ::sysconf(_SC_PAGESIZE);
}

class MemoryUseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // All of them stay until the end: by what one gave back, the next would not make the process
    // grow.
    static auto& engines = *new std::vector<std::unique_ptr<Engine>>;
    engines.push_back(Engine::Create({.thread_count = 1}));
    engine_ = engines.back().get();
    // What the first write costs is not the stores'.
    Create("first", 8);
    Append("first", 8, 100, 1);
    before_ = ResidentBytes();
  }

  void Create(const std::string& name, std::int64_t dim) {
    ASSERT_THAT(engine_->CreateStore({.name = name, .key_dim = dim, .value_dim = dim}), IsOk());
  }

  enum class Tags { kNone, kIdsAndLabels };

  void Append(const std::string& store, std::int64_t dim, std::int64_t rows, std::int64_t batch,
              Tags tags = Tags::kNone, std::int64_t first_id = 0) {
    const std::vector<float> components = NormalFloats(batch * dim, 1);
    for (std::int64_t first = 0; first < rows; first += batch) {
      const std::int64_t count = std::min(batch, rows - first);
      const MatrixView view{.data = components.data(), .rows = count, .cols = dim};
      std::vector<std::uint64_t> ids;
      std::vector<std::vector<std::string>> labels;
      for (std::int64_t row = first; tags != Tags::kNone && row < first + count; ++row) {
        ids.push_back(static_cast<std::uint64_t>(first_id + row));
        labels.push_back({"even or odd: " + std::to_string(row % 2), std::to_string(row % 1000)});
      }
      ASSERT_THAT(
          AppendAndWait(
              *engine_,
              {.store = store, .keys = view, .values = view, .ids = ids, .row_labels = labels}),
          IsOk());
    }
  }

  double ResidentGrowth() const { return static_cast<double>(ResidentBytes() - before_); }
  double ByteSizeOfAll(std::int64_t count_max) const {
    double bytes = 0;
    const ListResult list = *engine_->ListStores("s", "", count_max);
    for (const StoreInfo& info : list.stores) {
      bytes += static_cast<double>(info.byte_size);
    }
    return bytes;
  }

  Engine* engine_ = nullptr;
  std::int64_t before_ = 0;
};

TEST_F(MemoryUseTest, AnEmptyStoreTakesLessThan4KiB) {
  constexpr std::int64_t kCount = 20'000;
  for (std::int64_t i = 0; i < kCount; ++i) Create("s" + std::to_string(i), 128);
  EXPECT_LT(ResidentGrowth() / kCount, 4096);
  EXPECT_LT(ByteSizeOfAll(kCount) / kCount, 4096);
  EXPECT_GT(ByteSizeOfAll(kCount), 0.5 * ResidentGrowth());
}

TEST_F(MemoryUseTest, AStoreOfAFewRowsTakesLittleMoreThanAPanelAndItsMemory) {
  constexpr std::int64_t kCount = 5'000, kDim = 32;
  for (std::int64_t i = 0; i < kCount; ++i) {
    const std::string name = "s" + std::to_string(i);
    Create(name, kDim);
    Append(name, kDim, 5, 1);
  }
  constexpr double kPanelBytes = 16 * 2 * kDim * 4, kMemoryBytes = 2 * kDim * 16;
  EXPECT_LT(ResidentGrowth() / kCount, kPanelBytes + kMemoryBytes + 4096);
  EXPECT_NEAR(ByteSizeOfAll(kCount) / ResidentGrowth(), 1, 0.15);
}

// What it takes to take a large append back once stayed with the store.
TEST_F(MemoryUseTest, ALargeAppendLeavesNothingBehind) {
  // On the heap, as blocks of so narrow rows are: the process keeps some for further requests.
  const auto bytes_in_use = [] {
    const auto heap = ::mallinfo2();
    return static_cast<double>(heap.uordblks + heap.hblkhd);
  };
  const double before = bytes_in_use();
  Create("s", 2);
  Append("s", 2, 40'000, 40'000, Tags::kIdsAndLabels);
  Create("t", 2);  // Once this is answered, the append is gone.
  EXPECT_NEAR(ByteSizeOfAll(1) / (bytes_in_use() - before), 1, 0.1) << ByteSizeOfAll(1);
}

struct Shape {
  const char* name;
  std::int64_t dim;
  std::int64_t rows;
  std::int64_t batch;
};

void PrintTo(const Shape& shape, std::ostream* out) { *out << shape.name; }

class LargeStoresTest : public MemoryUseTest, public ::testing::WithParamInterface<Shape> {
 protected:
  // Stores that grow side by side, as in a server.
  void ExpectHonestByteSizes(Tags tags) {
    constexpr int kCount = 4, kPieces = 4;
    const Shape& shape = GetParam();
    for (int i = 0; i < kCount; ++i) Create("s" + std::to_string(i), shape.dim);
    for (int piece = 0; piece < kPieces; ++piece) {
      for (int i = 0; i < kCount; ++i) {
        const std::int64_t rows = shape.rows / kPieces;
        Append("s" + std::to_string(i), shape.dim, rows, shape.batch, tags, piece * rows);
      }
    }
    EXPECT_GT(ByteSizeOfAll(kCount), kCount * 1e6);
    EXPECT_NEAR(ByteSizeOfAll(kCount) / ResidentGrowth(), 1, 0.1) << ByteSizeOfAll(kCount);
  }
};

TEST_P(LargeStoresTest, ByteSizeIsWhatTheProcessGrewBy) { ExpectHonestByteSizes(Tags::kNone); }

TEST_P(LargeStoresTest, ByteSizeIsWhatTheProcessGrewByForIdsAndLabelsToo) {
  ExpectHonestByteSizes(Tags::kIdsAndLabels);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, LargeStoresTest,
    ::testing::Values(Shape{.name = "NarrowRowsOneByOne", .dim = 4, .rows = 40'000, .batch = 4},
                      Shape{.name = "NarrowRows", .dim = 8, .rows = 100'000, .batch = 500},
                      Shape{.name = "CommonRows", .dim = 64, .rows = 20'000, .batch = 100},
                      Shape{.name = "WideRows", .dim = 1000, .rows = 2'000, .batch = 100},
                      // Behind the first 32 MB on large pages.
                      Shape{.name = "ManyRows", .dim = 64, .rows = 90'400, .batch = 1'000}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace softlookup
