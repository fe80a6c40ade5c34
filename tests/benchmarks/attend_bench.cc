#include "tests/benchmarks/attend_bench.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/kernels/panel.h"
#include "core/parallel/fork_join_pool.h"
#include "softlookup/engine.h"
#include "tests/benchmarks/measuring.h"
#include "tests/benchmarks/normal_floats.h"
#include "tests/benchmarks/read_limit.h"
#include "tests/benchmarks/sampled_reference.h"
#include "tests/testing/engine_calls.h"

namespace softlookup::testing {
namespace {

// A repetition is as many calls as take this long: one, where calls are long.
constexpr double kRepetitionSeconds = 0.02;

constexpr char kStoreName[] = "rows";
constexpr std::int64_t kBatchFloats = std::int64_t{4} << 20;

struct AttendFlags {
  std::int64_t query_count = 256;
  std::int64_t row_count = 100'000;
  std::int64_t key_dim = 128;
  std::int64_t value_dim = 128;
  std::string storage = "float32";
  std::string kernel = "auto";
  double temperature = 1;
  int thread_count = 2;
  int repetitions = 7;

  StorageType storage_type() const {
    return storage == "float32"    ? StorageType::kFloat32
           : storage == "bfloat16" ? StorageType::kBfloat16
                                   : StorageType::kInt8;
  }
  // Of all rows together, as they are kept.
  double row_bytes() const {
    const kernels::PanelShape shape{
        .key_dim = key_dim, .value_dim = value_dim, .storage = storage_type()};
    return static_cast<double>(row_count * shape.row_bytes());
  }
  double row_floats() const { return static_cast<double>(row_count * (key_dim + value_dim)); }
};

// The median of a repetition's calls, each of which returns its seconds. The first one is left out:
// it finds the caches as somebody else left them.
double Repetition(absl::FunctionRef<double()> call) {
  call();
  std::vector<double> seconds;
  double total = 0;
  do {
    seconds.push_back(call());
    total += seconds.back();
  } while (total < kRepetitionSeconds);
  return Median(std::move(seconds));
}

// Fills the store with rows, which `of_rows` sees as they came, and `of_kept_rows` as they are
// kept.
void AppendRows(const AttendFlags& flags, ForkJoinPool& pool, Engine& engine,
                SampledReference& of_rows, SampledReference& of_kept_rows) {
  StoreConfig config;
  config.name = kStoreName;
  config.key_dim = flags.key_dim;
  config.value_dim = flags.value_dim;
  config.storage_type = flags.storage_type();
  OrDie(engine.CreateStore(config));
  const std::int64_t batch_rows = std::clamp<std::int64_t>(
      kBatchFloats / (flags.key_dim + flags.value_dim), 1, engine.limits().rows_per_append_max);
  std::uint64_t seed = 2;  // The queries have 1.
  for (std::int64_t row = 0; row < flags.row_count; row += batch_rows) {
    const std::int64_t rows = std::min(batch_rows, flags.row_count - row);
    const std::vector<float> keys = NormalFloats(rows * flags.key_dim, seed++, pool);
    const std::vector<float> values = NormalFloats(rows * flags.value_dim, seed++, pool);
    const AppendRequest request{
        .store = kStoreName,
        .keys = {.data = keys.data(), .rows = rows, .cols = flags.key_dim},
        .values = {.data = values.data(), .rows = rows, .cols = flags.value_dim},
        .may_block = true};
    OrDie(AppendAndWait(engine, request));
    of_rows.AddRows(request.keys, request.values, pool);
  }
  const auto reader = OrDie(engine.ReadRows(kStoreName, {}));
  for (;;) {
    const std::vector<Row> rows = reader->Next(batch_rows);
    if (rows.empty()) return;
    std::vector<float> keys, values;
    for (const Row& row : rows) {
      keys.insert(keys.end(), row.key.begin(), row.key.end());
      values.insert(values.end(), row.value.begin(), row.value.end());
    }
    const auto count = static_cast<std::int64_t>(rows.size());
    of_kept_rows.AddRows({.data = keys.data(), .rows = count, .cols = flags.key_dim},
                         {.data = values.data(), .rows = count, .cols = flags.value_dim}, pool);
  }
}

void RunAttend(const AttendFlags& flags) {
  const KernelChoice choice = OrDie(ChooseKernel(*KernelOfName(flags.kernel)));
  if (choice.kernel != Kernel::kSimd)
    std::cerr << "kernel " << NameOf(choice.kernel) << ": " << choice.why << "\n";
  const auto engine = Engine::Create({.thread_count = flags.thread_count, .kernel = choice.kernel});
  std::vector<float> queries;
  LookupRequest request{.store = kStoreName,
                        .options = {.score = Score::kScaledDot, .temperature = flags.temperature}};
  std::unique_ptr<SampledReference> of_rows, of_kept_rows;
  {
    ForkJoinPool pool(flags.thread_count, 1);  // Gone before anything is measured.
    queries = NormalFloats(flags.query_count * flags.key_dim, 1, pool);
    request.queries = {.data = queries.data(), .rows = flags.query_count, .cols = flags.key_dim};
    for (auto* reference : {&of_rows, &of_kept_rows}) {
      *reference =
          std::make_unique<SampledReference>(request.queries, flags.value_dim, flags.temperature);
    }
    AppendRows(flags, pool, *engine, *of_rows, *of_kept_rows);
  }

  const double row_bytes = flags.row_bytes();
  ReadLimit read_limit(static_cast<std::int64_t>(row_bytes), flags.thread_count);
  LookupResult result;
  std::vector<double> lookup_seconds, read_seconds;
  // In turns, so that both meet the same machine.
  for (int i = 0; i < flags.repetitions; ++i) {
    lookup_seconds.push_back(Repetition(
        [&] { return Seconds([&] { result = OrDie(LookupAndWait(*engine, request)); }); }));
    read_seconds.push_back(Repetition([&] { return read_limit.Pass(); }));
  }

  const double seconds = Median(lookup_seconds);
  const double flop = 2 * static_cast<double>(flags.query_count) * flags.row_floats();
  std::printf(
      "median_ms=%.4f gflops=%.1f gb_per_s=%.2f read_limit_gb_per_s=%.2f "
      "max_relative_error=%.2e error_to_appended_rows=%.2e bytes_per_row=%.1f\n",
      1e3 * seconds, 1e-9 * flop / seconds, 1e-9 * row_bytes / seconds,
      1e-9 * static_cast<double>(read_limit.bytes()) / Median(read_seconds),
      of_kept_rows->MaxRelativeError(result.values), of_rows->MaxRelativeError(result.values),
      static_cast<double>(OrDie(engine->GetStore(kStoreName)).byte_size) /
          static_cast<double>(flags.row_count));
}

}  // namespace

void AddAttendBench(CLI::App& app) {
  const auto flags = std::make_shared<AttendFlags>();
  const Limits limits;
  CLI::App* command = app.add_subcommand(
      "attend", "Normally distributed queries against normally distributed rows, SCALED_DOT");
  command->add_option("--queries", flags->query_count, "Queries in the batch")
      ->check(CLI::Range(std::int64_t{1}, limits.queries_per_lookup_max));
  command->add_option("--rows", flags->row_count, "Rows in the store")
      ->check(CLI::Range(std::int64_t{1}, kRowCountMax));
  command->add_option("--key-dim", flags->key_dim)->check(CLI::Range(std::int64_t{1}, kDimMax));
  command->add_option("--value-dim", flags->value_dim)->check(CLI::Range(std::int64_t{1}, kDimMax));
  command->add_option("--storage", flags->storage, "How rows are kept")
      ->check(CLI::IsMember({"float32", "bfloat16", "int8"}));
  command->add_option("--kernel", flags->kernel, "What scans: auto is the fastest that is there")
      ->check(CLI::IsMember(KernelNames()));
  command->add_option("--temperature", flags->temperature)
      ->check(CLI::Range(kTemperatureMin, kTemperatureMax));
  command->add_option("--threads", flags->thread_count, "Threads that scan, and that read")
      ->check(CLI::Range(1, 1024));
  command->add_option("--repetitions", flags->repetitions, "The median of these is printed")
      ->check(CLI::Range(1, 1000));
  command->callback([flags] { RunAttend(*flags); });
}

}  // namespace softlookup::testing
