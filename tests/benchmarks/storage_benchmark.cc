// What keeping everything costs, as ratios to the same bytes without us, in one run:
//   storage_benchmark appends|loading|all [DIRECTORY]
// Writes up to 2 GB there, or to the system's temporary directory, and removes it.
#include <fcntl.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "softlookup/engine.h"
#include "tests/benchmarks/measuring.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"

namespace softlookup::testing {
namespace {

constexpr std::int64_t kDim = 128;
constexpr int kWriters = 16;
constexpr std::int64_t kRowsOfABatch = 64;

void CheckRocksdb(const rocksdb::Status& status) {
  if (status.ok()) return;
  std::cerr << status.ToString() << "\n";
  std::exit(1);
}

class Directory {
 public:
  Directory(const std::string& parent, const char* name)
      : path_(absl::StrCat(parent, "/softlookup-benchmark-", getpid(), "-", name)) {
    std::filesystem::remove_all(path_);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

std::unique_ptr<Engine> OpenEngine(const std::string& path) {
  return OrDie(Engine::Open({.thread_count = 2}, path, [](const absl::Status& damage) {
    std::cerr << damage << "\n";
    std::exit(1);
  }));
}

struct Batch {
  std::vector<float> keys = NormalFloats(kRowsOfABatch * kDim, 1);
  std::vector<float> values = NormalFloats(kRowsOfABatch * kDim, 2);

  AppendRequest RowsForStore(std::int64_t rows) const {
    return {.store = "rows",
            .keys = {.data = keys.data(), .rows = rows, .cols = kDim},
            .values = {.data = values.data(), .rows = rows, .cols = kDim},
            .may_block = true};
  }
};

void MakeStore(Engine& engine) {
  StoreConfig config;
  config.name = "rows";
  config.key_dim = config.value_dim = kDim;
  OrDie(engine.CreateStore(config));
}

std::unique_ptr<rocksdb::DB> OpenRocksdb(const std::string& path) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  rocksdb::DB* db = nullptr;
  CheckRocksdb(rocksdb::DB::Open(options, path, &db));
  return std::unique_ptr<rocksdb::DB>(db);
}

// Calls write(n) from 1 on, on `writers` threads, for about `duration`; returns calls a second.
double Rate(int writers, absl::Duration duration, const std::function<void(std::uint64_t)>& write) {
  std::atomic<std::uint64_t> calls{0};
  const absl::Time end = absl::Now() + duration;
  const double seconds = Seconds([&] {
    std::vector<std::thread> threads;
    for (int i = 0; i < writers; ++i) {
      threads.emplace_back([&] {
        while (absl::Now() < end) write(++calls);
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  return static_cast<double>(calls) / seconds;
}

std::string KeyOf(std::uint64_t number) { return absl::StrCat("key", number); }

// Both in turns, so that both meet the same machine; the median of the ratios of rates.
double RatioOfRates(int writers, const std::function<void(std::uint64_t)>& ours,
                    const std::function<void(std::uint64_t)>& theirs) {
  std::vector<double> ratios;
  for (int round = 0; round < 7; ++round) {
    const double our_rate = Rate(writers, absl::Milliseconds(500), ours);
    const double their_rate = Rate(writers, absl::Milliseconds(500), theirs);
    ratios.push_back(our_rate / their_rate);
    std::printf("  ours %.0f/s, RocksDB %.0f/s\n", our_rate, their_rate);
  }
  return Median(ratios);
}

void DurableAppends(const std::string& parent, int writers, std::int64_t rows) {
  const Directory our_directory(parent, "ours"), their_directory(parent, "theirs");
  const auto engine = OpenEngine(our_directory.path());
  MakeStore(*engine);
  const auto db = OpenRocksdb(their_directory.path());
  const Batch batch;
  const std::string value(static_cast<std::size_t>(rows * 2 * kDim * 4), 'x');
  std::atomic<std::uint64_t> number{0};
  const double ratio = RatioOfRates(
      writers, [&](std::uint64_t) { OrDie(AppendAndWait(*engine, batch.RowsForStore(rows))); },
      [&](std::uint64_t) {
        rocksdb::WriteOptions options;
        options.sync = true;
        CheckRocksdb(db->Put(options, KeyOf(++number), value));
      });
  std::printf("durable appends of %ld rows, %d writers: %.2f of RocksDB's rate (time %.2f x)\n",
              static_cast<long>(rows), writers, ratio, 1 / ratio);
}

double ReadFiles(const std::string& path, std::uint64_t& bytes) {
  std::vector<char> buffer(std::size_t{1} << 20);
  bytes = 0;
  return Seconds([&] {
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      const int file = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
      for (ssize_t count; (count = read(file, buffer.data(), buffer.size())) > 0;) {
        bytes += static_cast<std::uint64_t>(count);
      }
      close(file);
    }
  });
}

// Takes `bytes` of memory, writes to it and gives it back. A virtual machine whose balloon reports
// free pages loses them to its host within seconds, and getting them again costs several times what
// loading does; what was in use just before is mostly still there.
void WarmMemory(std::uint64_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  madvise(memory, bytes, MADV_HUGEPAGE);
  auto* const begin = static_cast<volatile char*>(memory);
  for (std::uint64_t i = 0; i < bytes; i += 4096) begin[i] = 1;
  munmap(memory, bytes);
}

void Loading(const std::string& parent, std::int64_t row_count) {
  const Directory directory(parent, "loading");
  {
    const auto engine = OpenEngine(directory.path());
    MakeStore(*engine);
    const Batch batch;
    AppendRequest request = batch.RowsForStore(kRowsOfABatch);
    request.durable = false;
    for (std::int64_t i = 0; i < row_count; i += kRowsOfABatch) {
      OrDie(AppendAndWait(*engine, request));
    }
  }
  OpenEngine(directory.path());  // What was in the write-ahead log becomes a table.
  std::vector<double> ratios;
  for (int round = 0; round < 9; ++round) {
    std::uint64_t bytes = 0;
    const double reading = ReadFiles(directory.path(), bytes);
    WarmMemory(2 * bytes);
    std::unique_ptr<Engine> engine;
    const double loading = Seconds([&] { engine = OpenEngine(directory.path()); });
    ratios.push_back(loading / reading);
    std::printf("  %.2f GB: read in %.3f s, loaded in %.3f s\n", 1e-9 * static_cast<double>(bytes),
                reading, loading);
  }
  std::printf("loading %ld rows: %.2f x the time of reading the files\n",
              static_cast<long>(row_count), Median(ratios));
}

}  // namespace
}  // namespace softlookup::testing

int main(int argc, char** argv) {
  using namespace softlookup::testing;
  const std::string what = argc > 1 ? argv[1] : "all";
  const std::string parent = argc > 2 ? argv[2] : std::filesystem::temp_directory_path().string();
  if (what != "loading") {
    DurableAppends(parent, kWriters, kRowsOfABatch);
    DurableAppends(parent, 1, 1);
  }
  if (what != "appends") Loading(parent, 1'000'000);
}
