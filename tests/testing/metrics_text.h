#ifndef SOFTLOOKUP_TESTS_TESTING_METRICS_TEXT_H_
#define SOFTLOOKUP_TESTS_TESTING_METRICS_TEXT_H_

#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace softlookup::testing {

// What a page in Prometheus' text format says.
struct MetricsText {
  struct Family {
    std::string type;
    std::set<std::string> label_names;  // Without a histogram's le.
  };
  std::map<std::string, Family> families;
  // By name and labels as they stand there, as in `x_bucket{method="Lookup",le="0.1"}`.
  std::map<std::string, double> samples;

  // That of `sample`, or `otherwise` if there is none.
  double Value(const std::string& sample, double otherwise = 0) const;
};

// Reads a page, strictly: INVALID_ARGUMENT for what the format does not allow, for a metric whose
// type and help are not told first or whose samples do not stand together, for a sample that is
// there twice, and for a histogram whose buckets do not add up.
absl::StatusOr<MetricsText> ParseMetricsText(absl::string_view text);

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_METRICS_TEXT_H_
