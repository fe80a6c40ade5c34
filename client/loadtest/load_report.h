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

// The percentiles that reports show.
inline constexpr std::array<double, 7> kPercentiles = {50, 75, 90, 95, 99, 99.9, 99.99};

// A parameter of the test, such as "rate" and "5000". The value is the default if the user gave
// none. The JSON report shows the text of a number or a boolean as a number or a boolean.
struct Parameter {
  std::string name;
  std::string value;
};

// The verdict on a load test. If several apply, the first in this order is the verdict.
enum class Verdict {
  kWrongAnswers,
  kInterrupted,
  kNoRate,       // The search found no rate that held.
  kNoneOk,       // No call ended OK.
  kNoneChecked,  // No answer could be verified.
  kInvalid,      // See LoadReport::invalid().
  kFailed,       // A condition of --fail-if holds.
  kGood,
};

// Returns the verdict's name in JSON, such as "wrong_answers" for kWrongAnswers.
const char* NameOf(Verdict verdict);

// A verdict other than kGood, and its reason.
struct Finding {
  Verdict verdict = Verdict::kFailed;
  std::string text;
};

// Everything that a load test found, for people and for programs.
struct LoadReport {
  std::string version;  // The tool's.
  std::string server;   // The server's address.
  std::vector<Parameter> parameters;
  LoadResult result;  // With --find-max: of the best step, or of the last one if no rate held.
  std::optional<Verification> verification;
  std::vector<Condition> fail_if;

  // The two members below are set with --find-max only.
  std::string objectives;
  FindMaxResult search;

  bool has_search() const { return !objectives.empty(); }
  // Whether the run, the search or the verification was interrupted.
  bool interrupted() const;
  // Returns the reasons why the figures may not be the server's; empty if there is none.
  std::vector<std::string> invalid() const;
  // Returns the conditions of --fail-if that hold.
  std::vector<Condition> failed() const;
  // Returns what speaks against the figures, in the order of the verdicts; empty if nothing does.
  // Of the verdicts kInterrupted to kNoneChecked, only the first that applies is returned.
  std::vector<Finding> findings() const;
  Verdict verdict() const;
};

// Describes the load, such as "open loop, 5,000/s, Poisson arrivals".
std::string LoadText(const LoadOptions& options);

// Returns the columns of a table of latencies, each a title and a histogram: one per method, then
// "rejected" for rejected calls. Empty histograms have no column. With more than one method, "all"
// is the first column and has the calls of all methods.
std::vector<std::pair<std::string, LatencyHistogram>> LatencyColumns(const Tally& tally);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_LOAD_REPORT_H_
