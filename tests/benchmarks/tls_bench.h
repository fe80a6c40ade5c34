#ifndef SOFTLOOKUP_TESTS_BENCHMARKS_TLS_BENCH_H_
#define SOFTLOOKUP_TESTS_BENCHMARKS_TLS_BENCH_H_

#include <CLI/CLI.hpp>

namespace softlookup::testing {

// Adds the command `tls`: what TLS and a token cost small lookups.
void AddTlsBench(CLI::App& app);

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_BENCHMARKS_TLS_BENCH_H_
