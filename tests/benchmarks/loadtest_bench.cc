#include "tests/benchmarks/loadtest_bench.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "client/loadtest/connections.h"
#include "client/loadtest/run_load.h"
#include "client/loadtest/traffic.h"
#include "core/base/limits.h"
#include "core/parallel/fork_join_pool.h"
#include "tests/benchmarks/echo_server.h"
#include "tests/benchmarks/grpc_caller.h"
#include "tests/benchmarks/measuring.h"

namespace softlookup::testing {
namespace {

constexpr int kStoreRounds = 7;

struct LoadtestFlags {
  std::int64_t query_count = 1;
  FilledStore store{.row_count = 0, .key_dim = 64, .value_dim = 64};
  int concurrency = 8;
  double seconds = 3;
};

// What the server answers to every lookup: as many bytes as the real one would.
v1::LookupResponse Answer(const LoadtestFlags& flags) {
  v1::LookupResponse response;
  response.mutable_values()->set_rows(static_cast<std::uint32_t>(flags.query_count));
  response.mutable_values()->set_cols(static_cast<std::uint32_t>(flags.store.value_dim));
  response.mutable_values()->set_data(
      std::string(4 * flags.query_count * flags.store.value_dim, 1));
  for (std::int64_t q = 0; q < flags.query_count; ++q) {
    v1::QueryStats* const stats = response.add_stats();
    stats->set_log_sum_exp(q + 1.5);
    stats->set_max_logit(q + 0.5);
    stats->set_counted_rows(1000);
    stats->set_entropy(q + 2.5);
  }
  response.set_revision(2);
  response.set_row_count(1000);
  return response;
}

void RunLoadtestBench(const LoadtestFlags& flags) {
  EchoServer echo(EchoApi::kCompletionQueue);
  const std::string address = echo.Start(Answer(flags));
  Caller bare(address);
  ForkJoinPool pool(1, 1);
  const v1::LookupRequest request = MakeLookup(flags.store, flags.query_count, 1, pool);

  const auto connections = OrDie(loadtest::Connections::Open(address, 1, absl::Seconds(10)));
  const loadtest::RowSource rows(static_cast<std::uint32_t>(flags.store.key_dim),
                                 static_cast<std::uint32_t>(flags.store.value_dim), 1);
  const auto traffic = OrDie(loadtest::Traffic::Make(
      {.queries = static_cast<std::uint32_t>(flags.query_count)}, rows, {flags.store.name}));
  const loadtest::LoadTarget target = {.connections = &connections, .traffic = &traffic};
  loadtest::LoadOptions options;
  options.concurrency = flags.concurrency;
  options.duration = absl::Seconds(flags.seconds / kStoreRounds);

  std::vector<double> bare_rates, loadtest_rates, ratios, ratios_with_deadlines;
  for (int round = 0; round < kStoreRounds; ++round) {
    bare_rates.push_back(
        bare.Measure({&request, 1}, {}, flags.concurrency, flags.seconds / kStoreRounds)
            .calls_per_second);
    options.timeout = absl::InfiniteDuration();  // The bare caller's have no deadlines either.
    loadtest_rates.push_back(loadtest::RunLoad(options, target).rate());
    ratios.push_back(loadtest_rates.back() / bare_rates.back());
    options.timeout = absl::Seconds(10);
    ratios_with_deadlines.push_back(loadtest::RunLoad(options, target).rate() / bare_rates.back());
  }
  std::printf("loadtest_per_s=%.6g bare_per_s=%.6g ratio=%.4g ratio_with_deadlines=%.4g\n",
              Median(loadtest_rates), Median(bare_rates), Median(ratios),
              Median(ratios_with_deadlines));
}

}  // namespace

void AddLoadtestBench(CLI::App& app) {
  const auto flags = std::make_shared<LoadtestFlags>();
  CLI::App* command = app.add_subcommand(
      "loadtest", "The load tester beside a bare gRPC caller, against a server that does nothing");
  command->add_option("--queries", flags->query_count, "Queries in a lookup")
      ->check(CLI::Range(std::int64_t{1}, Limits().queries_per_lookup_max));
  command->add_option("--key-dim", flags->store.key_dim, "Dimension of keys and queries")
      ->check(CLI::Range(std::int64_t{1}, kDimMax));
  command->add_option("--value-dim", flags->store.value_dim, "Dimension of values")
      ->check(CLI::Range(std::int64_t{1}, kDimMax));
  command->add_option("--concurrency", flags->concurrency, "Calls in flight")
      ->check(CLI::Range(1, 4096));
  command->add_option("--seconds", flags->seconds, "Seconds of calls by each, over all rounds")
      ->check(CLI::Range(kSecondsMin, kSecondsMax));
  command->callback([flags] { RunLoadtestBench(*flags); });
}

}  // namespace softlookup::testing
