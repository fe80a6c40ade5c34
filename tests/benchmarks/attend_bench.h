#ifndef SOFTLOOKUP_TESTS_BENCHMARKS_ATTEND_BENCH_H_
#define SOFTLOOKUP_TESTS_BENCHMARKS_ATTEND_BENCH_H_

#include <CLI/CLI.hpp>

namespace softlookup::testing {

// `attend`: a lookup in the engine, beside what the machine can read and the float64 answer.
void AddAttendBench(CLI::App& app);

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_BENCHMARKS_ATTEND_BENCH_H_
