#ifndef SOFTLOOKUP_TESTS_BENCHMARKS_ECHO_BENCH_H_
#define SOFTLOOKUP_TESTS_BENCHMARKS_ECHO_BENCH_H_

#include <CLI/CLI.hpp>

namespace softlookup::testing {

// `echo`: what the server makes of gRPC's calls a second, by small lookups.
void AddEchoBench(CLI::App& app);

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_BENCHMARKS_ECHO_BENCH_H_
