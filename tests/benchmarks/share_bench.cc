#include "tests/benchmarks/share_bench.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "core/parallel/fork_join_pool.h"
#include "tests/benchmarks/grpc_caller.h"
#include "tests/benchmarks/measuring.h"
#include "tests/testing/server_process.h"

namespace softlookup::testing {
namespace {

struct ShareFlags {
  FilledStore store{.row_count = 262'144, .key_dim = 128, .value_dim = 128};
  int client_count = 64;
  double seconds = 2;
  int repetitions = 7;
};

void RunShare(const ShareFlags& flags) {
  const ServerProcess sharing_server;
  const ServerProcess alone_server({"--share-queries", "1"});
  Caller sharing(sharing_server.grpc_address()), alone(alone_server.grpc_address());
  std::vector<v1::LookupRequest> requests;
  std::vector<std::string> answers;  // The values, each looked up alone.
  {
    ForkJoinPool pool(2, 1);
    sharing.Fill(flags.store, pool);
    alone.Fill(flags.store, pool);
    for (int i = 0; i < flags.client_count; ++i) {
      requests.push_back(MakeLookup(flags.store, 1, static_cast<std::uint64_t>(i + 1), pool));
      answers.push_back(alone.Lookup(requests.back()).values().data());
    }
  }

  std::vector<double> sharing_rates, alone_rates, sharing_p99s, alone_p99s;
  std::int64_t other_answers = 0;
  const auto measure = [&](Caller& caller, std::vector<double>& rates, std::vector<double>& p99s) {
    const Load load = caller.Measure(requests, answers, flags.client_count, flags.seconds);
    rates.push_back(load.calls_per_second);
    p99s.push_back(load.p99_ms);
    other_answers += load.other_answers;
  };
  for (int i = 0; i < flags.repetitions; ++i) {
    measure(sharing, sharing_rates, sharing_p99s);
    measure(alone, alone_rates, alone_p99s);
  }
  const double sharing_rate = Median(sharing_rates), alone_rate = Median(alone_rates);
  std::printf(
      "shared_per_s=%.5g alone_per_s=%.5g ratio=%.4g shared_p99_ms=%.5g alone_p99_ms=%.5g "
      "other_bits=%lld\n",
      sharing_rate, alone_rate, sharing_rate / alone_rate, Median(sharing_p99s), Median(alone_p99s),
      static_cast<long long>(other_answers));
}

}  // namespace

void AddShareBench(CLI::App& app) {
  const auto flags = std::make_shared<ShareFlags>();
  CLI::App* command = app.add_subcommand(
      "share", "Clients of one query each, of servers that share passes over the rows and do not");
  AddStoreOptions(*command, flags->store);
  command->add_option("--clients", flags->client_count, "Lookups in flight, one a client")
      ->check(CLI::Range(1, 4096));
  command
      ->add_option("--seconds", flags->seconds,
                   "Seconds of calls to each server, in each repetition")
      ->check(CLI::Range(kSecondsMin, kSecondsMax));
  command->add_option("--repetitions", flags->repetitions, "Times that each server is measured")
      ->check(CLI::Range(1, 1000));
  command->callback([flags] { RunShare(*flags); });
}

}  // namespace softlookup::testing
