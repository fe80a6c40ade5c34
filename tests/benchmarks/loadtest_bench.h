#ifndef SOFTLOOKUP_TESTS_BENCHMARKS_LOADTEST_BENCH_H_
#define SOFTLOOKUP_TESTS_BENCHMARKS_LOADTEST_BENCH_H_

#include <CLI/CLI.hpp>

namespace softlookup::testing {

// `loadtest`: the load tester at its own limit, beside a bare caller of gRPC's.
void AddLoadtestBench(CLI::App& app);

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_BENCHMARKS_LOADTEST_BENCH_H_
