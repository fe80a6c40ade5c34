// `softlookup-bench`: figures beside what bounds them. docs/performance.md says how to read them.
#include <CLI/CLI.hpp>

#include "absl/synchronization/mutex.h"
#include "tests/benchmarks/attend_bench.h"
#include "tests/benchmarks/echo_bench.h"
#include "tests/benchmarks/loadtest_bench.h"
#include "tests/benchmarks/share_bench.h"
#include "tests/benchmarks/tls_bench.h"

int main(int argc, char** argv) {
  // As the server does, so that callers and echoes are no slower than it.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  CLI::App app("Measures soft lookups", "softlookup-bench");
  app.option_defaults()->always_capture_default();
  app.require_subcommand(1);
  softlookup::testing::AddAttendBench(app);
  softlookup::testing::AddEchoBench(app);
  softlookup::testing::AddShareBench(app);
  softlookup::testing::AddLoadtestBench(app);
  softlookup::testing::AddTlsBench(app);
  CLI11_PARSE(app, argc, argv);
}
