#include "tests/benchmarks/tls_bench.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/parallel/fork_join_pool.h"
#include "tests/benchmarks/echo_server.h"
#include "tests/benchmarks/grpc_caller.h"
#include "tests/benchmarks/measuring.h"
#include "tests/testing/server_process.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

constexpr int kTlsRounds = 15;

struct TlsFlags {
  FilledStore store{.row_count = 100, .key_dim = 64, .value_dim = 64};
  int concurrency = 8;
  double seconds = 3;
};

// What the tool says. A tool that fails ends the program.
std::string RunTool(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), ToolBinary());
  CommandResult result = RunCommand(arguments);
  if (result.exit_code != 0) {
    std::cerr << result.err;
    std::exit(1);
  }
  if (!result.out.empty()) result.out.pop_back();  // The end of its line.
  return result.out;
}

std::string Contents(const std::string& path) {
  std::ostringstream contents;
  contents << std::ifstream(path, std::ios::binary).rdbuf();
  return contents.str();
}

std::shared_ptr<grpc::ChannelCredentials> Trusting(const std::string& authority) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = authority;
  return grpc::SslCredentials(options);
}

void RunTls(const TlsFlags& flags) {
  const TemporaryDirectory directory;
  const std::string tls = directory.path() + "/tls", auth = directory.path() + "/auth.json";
  RunTool({"tls", "init", tls});
  const std::string token =
      RunTool({"auth", "add", auth, "caller", "--role", "manage", "--stores", "*"});
  const std::string certificate = tls + "/server.pem", key = tls + "/server-key.pem";

  EchoServer plain_echo(EchoApi::kCallback),
      tls_echo(EchoApi::kCallback, PemKeyCertPair{Contents(key), Contents(certificate)});
  const ServerProcess plain,
      secure({"--tls-certificate", certificate, "--tls-key", key, "--auth", auth});
  Caller plain_caller(plain.grpc_address());
  const auto credentials = Trusting(Contents(tls + "/ca.pem"));
  Caller secure_caller(secure.grpc_address(), credentials, token);
  ForkJoinPool pool(1, 1);
  plain_caller.Fill(flags.store, pool);
  secure_caller.Fill(flags.store, pool);
  const v1::LookupRequest request = MakeLookup(flags.store, 1, 1, pool);
  const v1::LookupResponse response = plain_caller.Lookup(request);
  Caller plain_echo_caller(plain_echo.Start(response));
  Caller tls_echo_caller(tls_echo.Start(response), credentials, token);

  // Neighbours in time are compared, as a machine's speed changes between rounds.
  std::vector<double> lookup_rates, secure_rates, echo_rates, tls_echo_rates, ratios, echo_ratios;
  const auto measure = [&](Caller& caller, std::vector<double>& rates) {
    rates.push_back(caller.Measure({&request, 1}, {}, flags.concurrency, flags.seconds / kTlsRounds)
                        .calls_per_second);
  };
  for (int round = 0; round < kTlsRounds; ++round) {
    measure(plain_caller, lookup_rates);
    measure(secure_caller, secure_rates);
    measure(plain_echo_caller, echo_rates);
    measure(tls_echo_caller, tls_echo_rates);
    ratios.push_back(secure_rates.back() / lookup_rates.back());
    echo_ratios.push_back(tls_echo_rates.back() / echo_rates.back());
  }
  std::printf(
      "lookup_per_s=%.6g secure_per_s=%.6g ratio=%.4g echo_per_s=%.6g tls_echo_per_s=%.6g "
      "echo_ratio=%.4g\n",
      Median(lookup_rates), Median(secure_rates), Median(ratios), Median(echo_rates),
      Median(tls_echo_rates), Median(echo_ratios));
}

}  // namespace

void AddTlsBench(CLI::App& app) {
  const auto flags = std::make_shared<TlsFlags>();
  CLI::App* command = app.add_subcommand(
      "tls",
      "Small lookups with TLS and a token beside those without, and bare gRPC echoes likewise");
  AddStoreOptions(*command, flags->store);
  command->add_option("--concurrency", flags->concurrency, "Calls in flight")
      ->check(CLI::Range(1, 4096));
  command
      ->add_option("--seconds", flags->seconds, "Seconds of calls to each server, over all rounds")
      ->check(CLI::Range(kSecondsMin, kSecondsMax));
  command->callback([flags] { RunTls(*flags); });
}

}  // namespace softlookup::testing
