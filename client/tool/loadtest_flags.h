#ifndef SOFTLOOKUP_CLIENT_TOOL_LOADTEST_FLAGS_H_
#define SOFTLOOKUP_CLIENT_TOOL_LOADTEST_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/loadtest/condition.h"
#include "client/loadtest/load_options.h"
#include "client/loadtest/load_report.h"
#include "client/loadtest/test_stores.h"
#include "client/loadtest/traffic.h"

namespace softlookup::tool {

// The flags of `softlookup loadtest` as the user wrote them.
struct LoadtestFlags {
  std::optional<double> rate;
  std::string arrivals = "poisson";
  std::uint32_t concurrency = 16;
  bool find_max = false;
  std::string slo;
  // The next three times are written as "30" (seconds), "30s" or "500ms". An empty `duration` means
  // 10 s, or with --find-max 5 s for each rate that is tried.
  std::string duration;
  std::string warm_up = "1";
  std::string ramp = "0";
  std::uint32_t max_in_flight = 10000;
  std::uint32_t connections = 1;
  std::uint32_t senders = 1;
  std::uint32_t retries = 0;
  std::uint64_t seed = 1;

  std::string mix = "lookup=100";
  std::uint32_t queries = 1;
  std::uint32_t append_rows = 1;
  std::string weights = "none";
  std::optional<double> max_error;

  std::vector<std::string> stores_named;
  std::uint32_t stores = 1;
  std::uint64_t rows = 10000;
  std::optional<std::uint32_t> dim;
  std::uint32_t key_dim = 64;
  std::uint32_t value_dim = 64;
  std::string storage_type = "float32";
  std::string store_prefix = "loadtest";
  bool keep = false;

  bool verify = false;
  std::uint32_t verify_answers = 32;
  std::vector<std::string> fail_if;
  std::string json;
  std::string report;
  bool progress = false;
};

// The parsed and checked flags.
struct LoadtestPlan {
  loadtest::LoadOptions load;
  loadtest::TrafficOptions traffic;
  loadtest::TestStoresOptions stores;
  // Dimensions of the test's own stores. With --store, Loadtest replaces them by the dimensions of
  // the named stores.
  std::uint32_t key_dim = 0;
  std::uint32_t value_dim = 0;
  std::vector<loadtest::Condition> objectives;  // Set with --find-max.
  std::vector<loadtest::Condition> fail_if;
};

// `flags` must outlive `command`.
void AddLoadtestFlags(CLI::App* command, LoadtestFlags* flags);

// Parses and checks `flags`. UsageError if a flag does not parse or two flags contradict each
// other. `timeout` is the deadline of each call.
absl::StatusOr<LoadtestPlan> PlanOf(const LoadtestFlags& flags, absl::Duration timeout);

// Returns the flags that influence the figures, for the report, with the values in use.
std::vector<loadtest::Parameter> ParametersOf(const LoadtestFlags& flags, const LoadtestPlan& plan);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_LOADTEST_FLAGS_H_
