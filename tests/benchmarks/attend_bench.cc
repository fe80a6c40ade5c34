#include "tests/benchmarks/attend_bench.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "client/output/vocabulary.h"
#include "core/attention/options.h"
#include "core/kernels/panel.h"
#include "core/parallel/fork_join_pool.h"
#include "softlookup/engine.h"
#include "softlookup/v1/attention.pb.h"
#include "tests/benchmarks/bench_rows.h"
#include "tests/benchmarks/error_limit.h"
#include "tests/benchmarks/fma_peak.h"
#include "tests/benchmarks/measuring.h"
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
  RowFlags rows;
  std::string score = "scaled-dot";
  std::string mode = "soft";
  double temperature = 1;
  std::uint32_t top_k = 0;
  std::optional<double> min_score;
  std::uint32_t listed_rows = 0;
  std::optional<double> max_error;
  std::string storage = "float32";
  std::string kernel = "auto";
  int thread_count = 2;
  int repetitions = 7;

  StorageType storage_type() const {
    return storage == "float32"    ? StorageType::kFloat32
           : storage == "bfloat16" ? StorageType::kBfloat16
                                   : StorageType::kInt8;
  }
  AttentionOptions options() const {
    // The enumerators have the numbers of the wire contract.
    AttentionOptions options{.score = static_cast<Score>(output::FromWord<v1::Score>(score)),
                             .temperature = temperature,
                             .mode = static_cast<Mode>(output::FromWord<v1::Mode>(mode)),
                             .top_k = top_k,
                             .min_score = min_score};
    if (listed_rows > 0) {
      options.weights = WeightsMode::kTop;
      options.top_weights = listed_rows;
    }
    if (max_error && !SetMaxError(*max_error, options)) {
      throw CLI::ValidationError("--max-error", "this build's engine has no bound on the error");
    }
    return options;
  }
};

// Returns the median of a repetition's calls, each of which returns its seconds. The first one is
// left out: it finds the caches as somebody else left them. What a call does not count, such as
// starting threads, takes time of the repetition, too.
double Repetition(absl::FunctionRef<double()> call) {
  call();
  std::vector<double> seconds;
  double left = kRepetitionSeconds;
  do {
    left -= Seconds([&] { seconds.push_back(call()); });
  } while (left > 0);
  return Median(std::move(seconds));
}

double Fastest(const std::vector<double>& seconds) {
  return *std::min_element(seconds.begin(), seconds.end());
}

void FillStore(const BenchRows& rows, StorageType storage, Engine& engine) {
  StoreConfig config;
  config.name = kStoreName;
  config.key_dim = rows.keys.cols;
  config.value_dim = rows.values().cols;
  config.storage_type = storage;
  OrDie(engine.CreateStore(config));
  const std::int64_t batch_rows = std::clamp<std::int64_t>(
      kBatchFloats / (config.key_dim + config.value_dim), 1, engine.limits().rows_per_append_max);
  for (std::int64_t row = 0; row < rows.keys.rows; row += batch_rows) {
    const std::int64_t count = std::min(batch_rows, rows.keys.rows - row);
    const AppendRequest request{
        .store = kStoreName,
        .keys = {.data = rows.keys.view().row(row), .rows = count, .cols = config.key_dim},
        .values = {.data = rows.values().row(row), .rows = count, .cols = config.value_dim},
        .may_block = true};
    OrDie(AppendAndWait(engine, request));
  }
}

// Returns the rows of the store with their components as it keeps them.
BenchRows KeptRows(Engine& engine) {
  constexpr std::int64_t kReadRows = 4096;
  const StoreConfig config = OrDie(engine.GetStore(kStoreName)).config;
  BenchRows kept{.keys = {.cols = config.key_dim},
                 .own_values = BenchMatrix{.cols = config.value_dim}};
  const auto reader = OrDie(engine.ReadRows(kStoreName, {}));
  for (;;) {
    const std::vector<Row> rows = reader->Next(kReadRows);
    if (rows.empty()) return kept;
    for (const Row& row : rows) {
      kept.keys.data.insert(kept.keys.data.end(), row.key.begin(), row.key.end());
      kept.own_values->data.insert(kept.own_values->data.end(), row.value.begin(), row.value.end());
    }
    kept.keys.rows += static_cast<std::int64_t>(rows.size());
    kept.own_values->rows = kept.keys.rows;
  }
}

// A filled store, a lookup in it, and the float64 answers.
struct Setting {
  BenchMatrix queries;
  LookupRequest request;
  kernels::PanelShape shape;
  std::int64_t row_count = 0;
  std::unique_ptr<SampledReference> of_appended_rows, of_kept_rows;
};

Setting MakeSetting(const AttendFlags& flags, Engine& engine) {
  ForkJoinPool pool(flags.thread_count, 1);  // Gone, like the rows, before anything is measured.
  Setting setting;
  const AttentionOptions options = flags.options();
  const BenchRows rows = MakeRows(flags.rows, pool);
  setting.queries =
      MakeQueries(flags.rows, flags.query_count, rows.keys.view(), options.score, pool);
  setting.request = {.store = kStoreName, .queries = setting.queries.view(), .options = options};
  setting.shape = {
      .key_dim = rows.keys.cols, .value_dim = rows.values().cols, .storage = flags.storage_type()};
  setting.row_count = rows.keys.rows;
  FillStore(rows, flags.storage_type(), engine);

  const ResolvedOptions resolved =
      OrDie(ResolveOptions(options, Score::kUnspecified, 1, engine.limits()));
  const auto reference_over = [&](const BenchRows& over) {
    return std::make_unique<SampledReference>(resolved, setting.queries.view(), over.keys.view(),
                                              over.values(), pool);
  };
  setting.of_appended_rows = reference_over(rows);
  // A FLOAT32 store keeps every bit.
  if (flags.storage_type() != StorageType::kFloat32) {
    setting.of_kept_rows = reference_over(KeptRows(engine));
  }
  return setting;
}

// What a lookup has to do at least: score every key, and add up the values of the rows that count.
struct LookupWork {
  double flop = 0;
  double bytes = 0;  // As the rows are kept, each key and value once.
};

LookupWork WorkOf(const AttendFlags& flags, const Setting& setting) {
  const kernels::PanelShape& shape = setting.shape;
  const std::int64_t row_count = setting.row_count;
  std::int64_t summed_rows = row_count;  // Of each query.
  if (flags.top_k > 0) summed_rows = std::min<std::int64_t>(flags.top_k, row_count);
  if (flags.mode == "hard") summed_rows = 1;
  if (flags.min_score) summed_rows = 0;  // No row need count.
  const std::int64_t multiply_adds = row_count * shape.key_dim + summed_rows * shape.value_dim;
  const kernels::PanelShape keys{
      .key_dim = shape.key_dim, .value_dim = 0, .storage = shape.storage};
  const std::int64_t read_values = std::min(flags.query_count * summed_rows, row_count);
  return {.flop = 2.0 * static_cast<double>(flags.query_count) * static_cast<double>(multiply_adds),
          .bytes = static_cast<double>(row_count * keys.row_bytes() +
                                       read_values * (shape.row_bytes() - keys.row_bytes()))};
}

// What bounds a lookup, a second.
struct MachineRates {
  double read = 0;  // Bytes.
  double peak = 0;  // Floating-point operations.
  double peak_of_one_thread = 0;
};

void PrintShape(const AttendFlags& flags, const Setting& setting) {
  std::printf("queries=%lld rows=%lld key_dim=%lld value_dim=%lld threads=%d ",
              static_cast<long long>(flags.query_count), static_cast<long long>(setting.row_count),
              static_cast<long long>(setting.shape.key_dim),
              static_cast<long long>(setting.shape.value_dim), flags.thread_count);
}

void PrintRates(const LookupWork& work, const std::vector<double>& lookup_seconds,
                const MachineRates& machine) {
  const double seconds = Median(lookup_seconds);
  const auto [min, max] = std::minmax_element(lookup_seconds.begin(), lookup_seconds.end());
  const double flop_rate = work.flop / seconds, byte_rate = work.bytes / seconds;
  std::printf("median_ms=%.6f min_ms=%.6f max_ms=%.6f ", 1e3 * seconds, 1e3 * *min, 1e3 * *max);
  std::printf("gflops=%.5g fma_peak_gflops=%.5g fma_peak_gflops_one_thread=%.5g ", 1e-9 * flop_rate,
              1e-9 * machine.peak, 1e-9 * machine.peak_of_one_thread);
  std::printf("fraction_of_peak=%.4g ", flop_rate / machine.peak);
  std::printf("gb_per_s=%.5g read_limit_gb_per_s=%.5g fraction_of_read_limit=%.4g ",
              1e-9 * byte_rate, 1e-9 * machine.read, byte_rate / machine.read);
}

void PrintErrors(const Setting& setting, const LookupResult& result) {
  const SampledReference& reference =
      setting.of_kept_rows ? *setting.of_kept_rows : *setting.of_appended_rows;
  std::printf("true_error=%.2e max_relative_error=%.2e error_to_appended_rows=%.2e ",
              reference.TrueError(result.values), reference.MaxRelativeError(result.values),
              setting.of_appended_rows->MaxRelativeError(result.values));
}

// What one lookup reads, by the engine's counters before and after it.
void PrintReads(const EngineStats& before, const EngineStats& after, std::int64_t query_count) {
  const auto queries = static_cast<double>(query_count);
  std::printf(
      "sketched_rows=%llu skipped_blocks=%llu scanned_rows=%llu summed_rows_per_query=%.6g ",
      static_cast<unsigned long long>(after.sketched_rows - before.sketched_rows),
      static_cast<unsigned long long>(after.skipped_blocks - before.skipped_blocks),
      static_cast<unsigned long long>(after.scanned_rows - before.scanned_rows),
      static_cast<double>(after.summed_rows - before.summed_rows) / queries);
}

void RunAttend(const AttendFlags& flags) {
  const KernelChoice choice = OrDie(ChooseKernel(*KernelOfName(flags.kernel)));
  if (choice.kernel != Kernel::kSimd)
    std::cerr << "kernel " << NameOf(choice.kernel) << ": " << choice.why << "\n";
  const auto engine = Engine::Create({.thread_count = flags.thread_count, .kernel = choice.kernel});
  const Setting setting = MakeSetting(flags, *engine);

  ReadLimit read_limit(static_cast<std::int64_t>(WorkOf(flags, setting).bytes), flags.thread_count);
  FmaPeak peak(flags.thread_count), peak_of_one_thread(1);
  LookupResult result;
  std::vector<double> lookup_seconds, read_seconds, peak_seconds, one_thread_seconds;
  // In turns, so that all meet the same machine.
  for (int i = 0; i < flags.repetitions; ++i) {
    lookup_seconds.push_back(Repetition(
        [&] { return Seconds([&] { result = OrDie(LookupAndWait(*engine, setting.request)); }); }));
    read_seconds.push_back(Repetition([&] { return read_limit.Pass(); }));
    peak_seconds.push_back(Repetition([&] { return peak.Pass(); }));
    one_thread_seconds.push_back(Repetition([&] { return peak_of_one_thread.Pass(); }));
  }
  PrintShape(flags, setting);
  PrintRates(WorkOf(flags, setting), lookup_seconds,
             {.read = static_cast<double>(read_limit.bytes()) / Median(read_seconds),
              .peak = peak.flop() / Fastest(peak_seconds),
              .peak_of_one_thread = peak_of_one_thread.flop() / Fastest(one_thread_seconds)});
  PrintErrors(setting, result);
  const EngineStats before = engine->stats();
  OrDie(LookupAndWait(*engine, setting.request));
  PrintReads(before, engine->stats(), flags.query_count);
  std::printf("bytes_per_row=%.1f",
              static_cast<double>(OrDie(engine->GetStore(kStoreName)).byte_size) /
                  static_cast<double>(setting.row_count));
  if (flags.max_error) PrintErrorLimit(result.stats);
  std::printf("\n");
}

}  // namespace

void AddAttendBench(CLI::App& app) {
  const auto flags = std::make_shared<AttendFlags>();
  const Limits limits;
  CLI::App* command =
      app.add_subcommand("attend", "A lookup in the engine, beside what bounds it and its error");
  command->add_option("--queries", flags->query_count, "Queries in the batch")
      ->check(CLI::Range(std::int64_t{1}, limits.queries_per_lookup_max));
  AddRowOptions(*command, flags->rows);
  command->add_option("--score", flags->score, "Measure of how alike query and key are")
      ->check(CLI::IsMember(output::Words<v1::Score>()));
  command
      ->add_option(
          "--mode", flags->mode,
          "How logits become weights: soft (softmax), hard (1 for the largest), linear (as is)")
      ->check(CLI::IsMember(output::Words<v1::Mode>()));
  command->add_option("--temperature", flags->temperature, "Logits are score / temperature")
      ->check(CLI::Range(kTemperatureMin, kTemperatureMax));
  command->add_option("--top-k", flags->top_k, "Only the K largest logits count; 0: all")
      ->check(CLI::Range(std::int64_t{0}, kRowCountMax));
  command->add_option("--min-score", flags->min_score, "Only rows of at least this score count")
      ->check(CLI::Number);
  command
      ->add_option("--list", flags->listed_rows,
                   "Each answer lists the K rows of the largest weights; 0: none")
      ->check(CLI::Range(std::int64_t{0}, kRowCountMax));
  command
      ->add_option("--max-error", flags->max_error,
                   "Error allowed, 0 to 1 times the largest value component; lets rows be left out")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--storage", flags->storage, "How rows are kept")
      ->check(CLI::IsMember({"float32", "bfloat16", "int8"}));
  command
      ->add_option("--kernel", flags->kernel,
                   "What scans: the CPU's vectors (simd, auto) or its matrix unit (amx)")
      ->check(CLI::IsMember(KernelNames()));
  command->add_option("--threads", flags->thread_count, "Threads that scan, read and compute")
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--repeat,--repetitions", flags->repetitions,
                   "Times that each is measured; the median is printed")
      ->check(CLI::Range(1, 1000));
  command->callback([flags] { RunAttend(*flags); });
}

}  // namespace softlookup::testing
