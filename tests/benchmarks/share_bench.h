#ifndef SOFTLOOKUP_TESTS_BENCHMARKS_SHARE_BENCH_H_
#define SOFTLOOKUP_TESTS_BENCHMARKS_SHARE_BENCH_H_

#include <CLI/CLI.hpp>

namespace softlookup::testing {

// `share`: what many clients get of a server whose lookups share passes over the rows, beside one
// whose lookups do not.
void AddShareBench(CLI::App& app);

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_BENCHMARKS_SHARE_BENCH_H_
