#ifndef SOFTLOOKUP_TESTS_BENCHMARKS_ERROR_LIMIT_H_
#define SOFTLOOKUP_TESTS_BENCHMARKS_ERROR_LIMIT_H_

#include <algorithm>
#include <cstdio>
#include <vector>

namespace softlookup::testing {

// The one place that knows AttentionOptions::max_error, QueryStats::error_bound and
// QueryStats::summed_rows. It compiles without them, and then --max-error is refused. Once core has
// all three, the `requires` and the template parameters can go.

// Sets the option and returns true, or returns false if core does not have it.
template <typename Options>
bool SetMaxError(double max_error, Options& options) {
  if constexpr (requires { options.max_error = max_error; }) {
    options.max_error = max_error;
    return true;
  }
  return false;
}

// Prints the largest bound that the engine gives on the error of a query, in units of the largest
// component of a value, and the mean number of rows whose values it added up.
template <typename Stats>
void PrintErrorLimit(const std::vector<Stats>& stats) {
  if constexpr (requires(Stats s) {
                  s.error_bound;
                  s.summed_rows;
                }) {
    double bound_max = 0, summed_rows = 0;
    for (const Stats& query : stats) {
      bound_max = std::max(bound_max, static_cast<double>(query.error_bound));
      summed_rows += static_cast<double>(query.summed_rows);
    }
    std::printf(" error_bound=%.2e summed_rows=%.1f", bound_max,
                summed_rows / static_cast<double>(stats.size()));
  }
}

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_BENCHMARKS_ERROR_LIMIT_H_
