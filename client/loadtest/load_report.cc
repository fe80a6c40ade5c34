#include "client/loadtest/load_report.h"

#include "absl/strings/str_cat.h"
#include "client/output/figure_text.h"

namespace softlookup::loadtest {

std::vector<std::string> LoadReport::invalid() const {
  if (!has_search()) return result.invalid;
  if (!search.limited_by_client) return {};
  return {"above the best rate this client was at its limit, so the server's may be higher"};
}

bool LoadReport::interrupted() const {
  return result.interrupted || (verification.has_value() && verification->interrupted);
}

std::vector<Condition> LoadReport::failed() const {
  std::vector<Condition> failed;
  for (const Condition& condition : fail_if) {
    if (condition.Holds(result)) failed.push_back(condition);
  }
  return failed;
}

std::vector<Finding> LoadReport::findings() const {
  std::vector<Finding> findings;
  const auto add = [&](Verdict verdict, std::string text) {
    findings.push_back({verdict, std::move(text)});
  };
  if (verification.has_value() && verification->wrong > 0) {
    add(Verdict::kWrongAnswers,
        absl::StrCat(verification->wrong, " of ", output::Counted(verification->answers, "answer"),
                     verification->wrong == 1 ? " was wrong: " : " were wrong: ",
                     verification->first_wrong));
  }
  if (interrupted()) {
    add(Verdict::kInterrupted, "interrupted");
  } else if (has_search() && !search.best.has_value()) {
    add(Verdict::kNoRate, absl::StrCat("no rate was found that keeps ", objectives));
  } else if (result.tally.sum().ok() == 0) {
    add(Verdict::kNoneOk, result.messages.empty() ? "no call was made in this time"
                                                  : absl::StrCat("no call ended OK: ",
                                                                 result.messages.begin()->second));
  } else if (verification.has_value() && verification->answers == 0) {
    add(Verdict::kNoneChecked, "--verify: no answer could be checked");
  }
  for (const std::string& reason : invalid()) add(Verdict::kInvalid, reason);
  for (const Condition& condition : failed()) {
    add(Verdict::kFailed,
        absl::StrCat("--fail-if ", condition.text(), ": ", condition.Describe(result)));
  }
  return findings;
}

Verdict LoadReport::verdict() const {
  const std::vector<Finding> found = findings();
  return found.empty() ? Verdict::kGood : found.front().verdict;
}

const char* NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kWrongAnswers:
      return "wrong_answers";
    case Verdict::kInterrupted:
      return "interrupted";
    case Verdict::kNoRate:
      return "no_rate";
    case Verdict::kNoneOk:
      return "none_ok";
    case Verdict::kNoneChecked:
      return "none_checked";
    case Verdict::kInvalid:
      return "invalid";
    case Verdict::kFailed:
      return "failed";
    case Verdict::kGood:
      return "good";
  }
  return "";
}

std::string LoadText(const LoadOptions& options) {
  if (!options.rate.has_value()) {
    return absl::StrCat("closed loop, ", output::CountText(options.concurrency), " ",
                        output::NounText(options.concurrency, "call"), " in flight");
  }
  return absl::StrCat("open loop, ", output::RateText(*options.rate), ", ",
                      options.arrivals == Arrivals::kPoisson ? "Poisson" : "constant", " arrivals");
}

std::vector<std::pair<std::string, LatencyHistogram>> LatencyColumns(const Tally& tally) {
  std::vector<std::pair<std::string, LatencyHistogram>> columns;
  for (std::size_t m = 0; m < kMethodCount; ++m) {
    if (tally.methods[m].latency.count() == 0) continue;
    columns.emplace_back(kMethodNames[m], tally.methods[m].latency);
  }
  if (columns.size() > 1) columns.emplace(columns.begin(), "all", tally.sum().latency);
  if (tally.rejection.count() > 0) columns.emplace_back("rejected", tally.rejection);
  return columns;
}

}  // namespace softlookup::loadtest
