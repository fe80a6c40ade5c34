#include "tests/benchmarks/echo_bench.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "core/base/limits.h"
#include "core/parallel/fork_join_pool.h"
#include "tests/benchmarks/echo_server.h"
#include "tests/benchmarks/grpc_caller.h"
#include "tests/benchmarks/measuring.h"
#include "tests/testing/server_process.h"

namespace softlookup::testing {
namespace {

constexpr int kRounds = 7;

struct EchoFlags {
  std::int64_t query_count = 1;
  FilledStore store{.row_count = 100, .key_dim = 64, .value_dim = 64};
  int concurrency = 8;
  double seconds = 3;
};

void RunEcho(const EchoFlags& flags) {
  EchoServer queue_echo(EchoApi::kCompletionQueue), callback_echo(EchoApi::kCallback),
      generic_echo(EchoApi::kGenericQueue);
  const ServerProcess server;
  Caller lookup_caller(server.grpc_address());
  ForkJoinPool pool(1, 1);
  lookup_caller.Fill(flags.store, pool);
  const v1::LookupRequest request = MakeLookup(flags.store, flags.query_count, 1, pool);
  const v1::LookupResponse response = lookup_caller.Lookup(request);
  Caller queue_caller(queue_echo.Start(response)), callback_caller(callback_echo.Start(response)),
      generic_caller(generic_echo.Start(response));

  std::vector<double> lookup_rates, queue_rates, callback_rates, generic_rates;
  const auto measure = [&](Caller& caller, std::vector<double>& rates) {
    rates.push_back(caller.Measure({&request, 1}, {}, flags.concurrency, flags.seconds / kRounds)
                        .calls_per_second);
  };
  for (int round = 0; round < kRounds; ++round) {
    measure(lookup_caller, lookup_rates);
    measure(queue_caller, queue_rates);
    measure(callback_caller, callback_rates);
    measure(generic_caller, generic_rates);
  }
  const double queue_rate = Median(queue_rates), callback_rate = Median(callback_rates);
  const bool queue_is_faster = queue_rate > callback_rate;
  const double echo_rate = std::max(queue_rate, callback_rate);
  const double lookup_rate = Median(lookup_rates), generic_rate = Median(generic_rates);
  std::printf(
      "lookup_per_s=%.6g echo_per_s=%.6g ratio=%.4g fastest_echo=%s completion_queue_per_s=%.6g "
      "callback_per_s=%.6g generic_per_s=%.6g ratio_to_generic=%.4g\n",
      lookup_rate, echo_rate, lookup_rate / echo_rate,
      queue_is_faster ? "completion_queue" : "callback", queue_rate, callback_rate, generic_rate,
      lookup_rate / generic_rate);
}

}  // namespace

void AddEchoBench(CLI::App& app) {
  const auto flags = std::make_shared<EchoFlags>();
  CLI::App* command = app.add_subcommand(
      "echo", "Small lookups beside bare gRPC echoes of the same payloads, over loopback");
  command->add_option("--queries", flags->query_count, "Queries in a lookup")
      ->check(CLI::Range(std::int64_t{1}, Limits().queries_per_lookup_max));
  AddStoreOptions(*command, flags->store);
  command->add_option("--concurrency", flags->concurrency, "Calls in flight")
      ->check(CLI::Range(1, 4096));
  command
      ->add_option("--seconds", flags->seconds, "Seconds of calls to each server, over all rounds")
      ->check(CLI::Range(kSecondsMin, kSecondsMax));
  command->callback([flags] { RunEcho(*flags); });
}

}  // namespace softlookup::testing
