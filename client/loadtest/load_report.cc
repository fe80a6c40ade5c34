#include "client/loadtest/load_report.h"

#include "absl/strings/str_cat.h"
#include "client/loadtest/figure_text.h"

namespace softlookup::loadtest {

std::vector<std::string> LoadReport::invalid() const {
  if (!has_search()) return result.invalid;
  if (!search.limited_by_client) return {};
  return {"above the best rate this client was at its limit, so the server's may be higher"};
}

std::string LoadReport::caution() const {
  const std::uint64_t overflow = result.tally.sum().overflow;
  if (overflow == 0) return "";
  return absl::StrCat(CountText(overflow),
                      " calls that were due were not sent, too many being in flight; the latencies "
                      "are without them, so better than the truth");
}

std::vector<Condition> LoadReport::failed() const {
  std::vector<Condition> failed;
  for (const Condition& condition : fail_if) {
    if (condition.Holds(result)) failed.push_back(condition);
  }
  return failed;
}

std::string LoadText(const LoadOptions& options) {
  if (!options.rate.has_value()) {
    return absl::StrCat("closed loop, ", CountText(options.concurrency), " calls in flight");
  }
  return absl::StrCat("open loop, ", RateText(*options.rate), ", ",
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
