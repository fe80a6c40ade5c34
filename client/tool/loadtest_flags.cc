#include "client/tool/loadtest_flags.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cpp/status_macros.h"
#include "client/output/vocabulary.h"
#include "client/tool/exit_code.h"
#include "client/tool/validators.h"

namespace softlookup::tool {
namespace {

using output::FromWord;
using output::Words;

constexpr absl::Duration kLongest = absl::Hours(24 * 7);

// Limits of the server: its defaults of --max-queries and --max-append-rows, and the wire
// contract's largest dimension.
constexpr std::uint32_t kQueriesMax = 4096;
constexpr std::uint32_t kAppendRowsMax = 65536;
constexpr std::uint32_t kDimMax = 65536;

constexpr double kRateMax = 10e6;  // Calls per second; far more than one client can send.

// Parses seconds, such as "30", or a time with a unit, such as "500ms". UsageError, with the flag's
// name, if `text` is neither or the time is not in [least, kLongest].
absl::StatusOr<absl::Duration> ParseTime(const char* flag, const std::string& text,
                                         absl::Duration least) {
  double seconds;
  absl::Duration time;
  if (absl::SimpleAtod(text, &seconds)) {
    time = absl::Seconds(seconds);
  } else if (!absl::ParseDuration(text, &time)) {
    time = -absl::InfiniteDuration();
  }
  if (time >= least && time <= kLongest) return time;
  return UsageError(absl::StrCat(flag, " takes seconds or a time such as 500ms or 2m, ",
                                 least > absl::ZeroDuration() ? "over" : "at least",
                                 " 0 and at most a week, not \"", text, "\""));
}

// Returns a UsageError with the flag's name in front of the message of `status`.
absl::Status FlagError(const char* flag, const absl::Status& status) {
  return UsageError(absl::StrCat(flag, ": ", status.message()));
}

absl::Status CheckTogether(const LoadtestFlags& flags) {
  if (!flags.stores_named.empty() && flags.verify) {
    return UsageError("--verify needs to know every row: it does not go with --store");
  }
  if (flags.find_max == flags.slo.empty()) {
    return UsageError("--find-max and --slo, such as p99=20ms, go together");
  }
  if (flags.rate.value_or(0) > kRateMax) {
    return UsageError(absl::StrCat("--rate takes at most 10,000,000 calls a second, not ",
                                   absl::StrFormat("%g", *flags.rate)));
  }
  if (flags.senders > flags.max_in_flight) {
    return UsageError("--max-in-flight must be at least --senders");
  }
  return absl::OkStatus();
}

absl::StatusOr<loadtest::LoadOptions> LoadOf(const LoadtestFlags& flags, absl::Duration timeout) {
  loadtest::LoadOptions load;
  load.rate = flags.rate;
  load.arrivals =
      flags.arrivals == "constant" ? loadtest::Arrivals::kConstant : loadtest::Arrivals::kPoisson;
  load.concurrency = static_cast<int>(flags.concurrency);
  load.senders = static_cast<int>(flags.senders);
  load.in_flight_max = static_cast<int>(flags.max_in_flight);
  load.attempts_max = static_cast<int>(flags.retries) + 1;
  load.timeout = timeout;
  load.seed = flags.seed;
  const std::string by_default = flags.find_max ? "5" : "10";
  CLIENT_ASSIGN_OR_RETURN(
      load.duration, ParseTime("--duration", flags.duration.empty() ? by_default : flags.duration,
                               absl::Milliseconds(1)));
  CLIENT_ASSIGN_OR_RETURN(load.warm_up,
                          ParseTime("--warm-up", flags.warm_up, absl::ZeroDuration()));
  CLIENT_ASSIGN_OR_RETURN(load.ramp, ParseTime("--ramp", flags.ramp, absl::ZeroDuration()));
  return load;
}

void AddLoadFlags(CLI::App* command, LoadtestFlags* flags) {
  command->option_defaults()->group("Load");
  auto* rate = command
                   ->add_option("--rate", flags->rate,
                                "Calls per second of an open loop; without --rate, a closed "
                                "loop. With --find-max: the first rate")
                   ->check(Positive());
  command
      ->add_option("--arrivals", flags->arrivals,
                   "Open loop: calls come evenly (constant) or at random (poisson)")
      ->check(CLI::IsMember({"constant", "poisson"}))
      ->capture_default_str();
  command
      ->add_option("--concurrency", flags->concurrency,
                   "Closed loop, without --rate: calls in flight all the time")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str()
      ->excludes(rate);
  command->add_flag("--find-max", flags->find_max,
                    "Search for the highest open-loop rate at which --slo holds and every call is "
                    "sent and succeeds");
  command
      ->add_option("--slo", flags->slo,
                   "With --find-max: what must hold, such as p99=20ms (at most 20 ms) or rate=900 "
                   "(at least 900/s)")
      ->type_name("FIGURE=BOUND,...");
  command
      ->add_option("--duration", flags->duration,
                   "Length of the measurement, in seconds or as 500ms (default 10; with --find-max "
                   "5 for each rate)")
      ->type_name("SECONDS");
  command
      ->add_option("--warm-up", flags->warm_up,
                   "Time at full load before the measurement, in seconds or as 500ms")
      ->type_name("SECONDS")
      ->capture_default_str();
  command
      ->add_option("--ramp", flags->ramp,
                   "Time before --warm-up in which the load grows from 0, in seconds or as 500ms")
      ->type_name("SECONDS")
      ->capture_default_str();
  command
      ->add_option(
          "--max-in-flight", flags->max_in_flight,
          "Open loop: most calls in flight. A call due beyond them is never sent: an overflow")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command
      ->add_option("--connections", flags->connections,
                   "Connections that the calls are spread over, in total")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command->add_option("--senders", flags->senders, "Open loop: threads that send")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command
      ->add_option(
          "--retries", flags->retries,
          "Most retries of a failed call; only failures that the client library retries are "
          "retried")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  command
      ->add_option("--seed", flags->seed,
                   "Seed of rows, queries, arrivals and the choice of requests")
      ->capture_default_str();
}

void AddTrafficFlags(CLI::App* command, LoadtestFlags* flags) {
  command->option_defaults()->group("Calls");
  command
      ->add_option("--mix", flags->mix,
                   "Shares of calls, such as lookup=90,append=10; their sum need not be 100")
      ->type_name("CALL=SHARE,...")
      ->capture_default_str();
  command->add_option("--queries", flags->queries, "Queries in a lookup")
      ->check(CLI::Range(1u, kQueriesMax))
      ->capture_default_str();
  command->add_option("--append-rows", flags->append_rows, "Rows in an append")
      ->check(CLI::Range(1u, kAppendRowsMax))
      ->capture_default_str();
  command
      ->add_option("--weights", flags->weights,
                   "Weights that lookups ask for: none, the largest (top), or all")
      ->check(CLI::IsMember(Words<v1::WeightsMode>()))
      ->capture_default_str();
  command
      ->add_option("--max-error", flags->max_error,
                   "Allowed error, as a part of the largest |value component|; 1e-5 unless larger")
      ->check(InRange(0, 1));
}

void AddStoreFlags(CLI::App* command, LoadtestFlags* flags) {
  command->option_defaults()->group("Stores");
  auto* named = command
                    ->add_option("--store", flags->stores_named,
                                 "An existing store to use, in place of new ones; appended rows "
                                 "stay in it; may be repeated")
                    ->type_name("NAME")
                    ->allow_extra_args(false);
  const auto add = [&](CLI::Option* option) { return option->excludes(named); };
  add(command
          ->add_option(
              "--stores", flags->stores,
              "Number of stores to make for the test; without --keep, they are deleted afterwards")
          ->check(CLI::Range(1, 100000))
          ->capture_default_str());
  add(command
          ->add_option("--rows", flags->rows,
                       "Rows that fill each store made for the test "
                       "before the calls begin")
          ->capture_default_str());
  auto* dim = add(command->add_option("--dim", flags->dim, "Sets both --key-dim and --value-dim")
                      ->check(CLI::Range(1u, kDimMax)));
  add(command
          ->add_option("--key-dim", flags->key_dim,
                       "Dimension of keys and queries in stores made for the test")
          ->check(CLI::Range(1u, kDimMax))
          ->capture_default_str()
          ->excludes(dim));
  add(command
          ->add_option("--value-dim", flags->value_dim,
                       "Dimension of values in stores made for the test")
          ->check(CLI::Range(1u, kDimMax))
          ->capture_default_str()
          ->excludes(dim));
  add(command
          ->add_option("--storage-type", flags->storage_type,
                       "Number type in which stores made for the test keep rows; bfloat16 and int8 "
                       "round them")
          ->check(CLI::IsMember({"float32", "bfloat16", "int8"}))
          ->capture_default_str());
  add(command
          ->add_option("--store-prefix", flags->store_prefix,
                       "Prefix of the names of stores made for the test; the tool adds a / and "
                       "more")
          ->capture_default_str());
  add(command->add_flag("--keep", flags->keep, "Do not delete the stores made for the test"));
}

void AddResultFlags(CLI::App* command, LoadtestFlags* flags) {
  command->option_defaults()->group("Results");
  auto* verify = command->add_flag(
      "--verify", flags->verify,
      "Check a sample of the answers against a float64 computation; exit with 8 if one is wrong");
  command
      ->add_option("--verify-answers", flags->verify_answers,
                   "With --verify: about how many answers to check")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str()
      ->needs(verify);
  command
      ->add_option("--fail-if", flags->fail_if,
                   "Exit with 8 if this holds, such as p99>20ms, errors>0 or rate<1000; may be "
                   "repeated")
      ->type_name("CONDITION")
      ->allow_extra_args(false);
  command->add_option("--json", flags->json, "Also write what -o json prints to this file")
      ->type_name("FILE");
  command->add_option("--report", flags->report, "Also write a page with charts to this file")
      ->type_name("FILE.html");
  command->add_flag("--progress", flags->progress,
                    "Show progress on standard error even if that is not a terminal");
}

}  // namespace

void AddLoadtestFlags(CLI::App* command, LoadtestFlags* flags) {
  AddLoadFlags(command, flags);
  AddTrafficFlags(command, flags);
  AddStoreFlags(command, flags);
  AddResultFlags(command, flags);
  command->option_defaults()->group("Options");
}

absl::StatusOr<LoadtestPlan> PlanOf(const LoadtestFlags& flags, absl::Duration timeout) {
  CLIENT_RETURN_IF_ERROR(CheckTogether(flags));
  LoadtestPlan plan;
  CLIENT_ASSIGN_OR_RETURN(plan.load, LoadOf(flags, timeout));
  const auto mix = loadtest::RequestMix::Parse(flags.mix);
  if (!mix.ok()) return FlagError("--mix", mix.status());
  plan.traffic.mix = *mix;
  plan.traffic.queries = flags.queries;
  plan.traffic.append_rows = flags.append_rows;
  plan.traffic.attention.set_weights(FromWord<v1::WeightsMode>(flags.weights));
  if (flags.max_error.has_value()) plan.traffic.attention.set_max_error(*flags.max_error);
  plan.stores = {.prefix = flags.store_prefix,
                 .count = static_cast<int>(flags.stores),
                 .storage = FromWord<v1::ElementType>(flags.storage_type),
                 .rows = flags.rows,
                 .keep = flags.keep};
  plan.key_dim = flags.dim.value_or(flags.key_dim);
  plan.value_dim = flags.dim.value_or(flags.value_dim);
  if (flags.find_max) {
    if (mix->Has(loadtest::Method::kAppend)) {
      return UsageError(
          "--find-max does not go with appends in --mix: the stores would grow from step to step, "
          "so the rates would not be those of one store; a --rate with appends measures one");
    }
    auto objectives = loadtest::ParseObjectives(flags.slo);
    if (!objectives.ok()) return FlagError("--slo", objectives.status());
    plan.objectives = *std::move(objectives);
  }
  for (const std::string& text : flags.fail_if) {
    auto condition = loadtest::Condition::Parse(text);
    if (!condition.ok()) return FlagError("--fail-if", condition.status());
    if (condition->is_equality()) {
      return UsageError(
          absl::StrCat("--fail-if: \"", text,
                       "\" would fail at exactly that figure alone; compare with > or "
                       "<, as in p99>20ms or rate<1000"));
    }
    plan.fail_if.push_back(*std::move(condition));
  }
  return plan;
}

std::vector<loadtest::Parameter> ParametersOf(const LoadtestFlags& flags,
                                              const LoadtestPlan& plan) {
  const auto seconds = [](absl::Duration time) {
    return absl::StrCat(absl::ToDoubleSeconds(time));
  };
  std::vector<loadtest::Parameter> parameters;
  const auto add = [&](const char* name, const std::string& value) {
    parameters.push_back({name, value});
  };
  if (flags.find_max) add("slo", flags.slo);
  if (flags.rate.has_value() || flags.find_max) {
    if (flags.rate.has_value()) add("rate", absl::StrCat(*flags.rate));
    add("arrivals", flags.arrivals);
    add("max_in_flight", absl::StrCat(flags.max_in_flight));
    add("senders", absl::StrCat(flags.senders));
  } else {
    add("concurrency", absl::StrCat(flags.concurrency));
  }
  add("ramp_s", seconds(plan.load.ramp));
  add("warm_up_s", seconds(plan.load.warm_up));
  add("duration_s", seconds(plan.load.duration));
  add("timeout_s", seconds(plan.load.timeout));
  add("connections", absl::StrCat(flags.connections));
  add("retries", absl::StrCat(flags.retries));
  add("mix", plan.traffic.mix.ToString());
  add("queries", absl::StrCat(flags.queries));
  add("append_rows", absl::StrCat(flags.append_rows));
  add("weights", flags.weights);
  if (flags.max_error.has_value()) add("max_error", absl::StrCat(*flags.max_error));
  if (flags.stores_named.empty()) {
    add("stores", absl::StrCat(flags.stores));
    add("rows", absl::StrCat(flags.rows));
    add("storage_type", flags.storage_type);
    add("store_prefix", flags.store_prefix);
  } else {
    add("store", absl::StrJoin(flags.stores_named, ", "));
  }
  add("key_dim", absl::StrCat(plan.key_dim));
  add("value_dim", absl::StrCat(plan.value_dim));
  add("seed", absl::StrCat(flags.seed));
  add("verify", flags.verify ? "true" : "false");
  if (flags.verify) add("verify_answers", absl::StrCat(flags.verify_answers));
  return parameters;
}

}  // namespace softlookup::tool
