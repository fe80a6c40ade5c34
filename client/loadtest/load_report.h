#ifndef SOFTLOOKUP_CLIENT_LOADTEST_LOAD_REPORT_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_LOAD_REPORT_H_

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/loadtest/condition.h"
#include "client/loadtest/find_max.h"
#include "client/loadtest/load_result.h"
#include "client/loadtest/verifier.h"

namespace softlookup::loadtest {

// The percentiles that are shown.
inline constexpr std::array<double, 7> kPercentiles = {50, 75, 90, 95, 99, 99.9, 99.99};

// A parameter as it was resolved: "rate", "5000". A number or a boolean is one in JSON, too.
struct Parameter {
  std::string name;
  std::string value;
};

// What a load test can come to. Of several, the first in this order decides.
enum class Verdict {
  kWrongAnswers,
  kInterrupted,
  kNoRate,       // A search in which no rate held.
  kNoneOk,       // No call ended OK.
  kNoneChecked,  // No answer could be verified.
  kInvalid,
  kFailed,  // A condition holds that must not.
  kGood,
};

// "wrong_answers".
const char* NameOf(Verdict verdict);

// A verdict that is not good, and why.
struct Finding {
  Verdict verdict = Verdict::kFailed;
  std::string text;
};

// All that a load test has found, for people and for programs.
struct LoadReport {
  std::string version;  // Of the tool.
  std::string server;
  std::vector<Parameter> parameters;
  LoadResult result;  // Of --find-max, that of the best step.
  std::optional<Verification> verification;
  std::vector<Condition> fail_if;

  // Of --find-max.
  std::string objectives;  // Empty without it.
  FindMaxResult search;

  bool has_search() const { return !objectives.empty(); }
  // The run, or the verification after it.
  bool interrupted() const;
  // Why the figures are not the server's.
  std::vector<std::string> invalid() const;
  // Conditions that hold though they must not.
  std::vector<Condition> failed() const;
  // All that speaks against the figures, worst first; none if all is good.
  std::vector<Finding> findings() const;
  Verdict verdict() const;
};

// "open loop, 5,000 calls/s, Poisson arrivals".
std::string LoadText(const LoadOptions& options);

// A column of a table of latencies: what is in it, and its histogram. Kinds without calls have
// none; with more than one kind, "all" is the first.
std::vector<std::pair<std::string, LatencyHistogram>> LatencyColumns(const Tally& tally);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_LOAD_REPORT_H_
