#ifndef SOFTLOOKUP_CORE_ATTENTION_ERROR_BUDGET_H_
#define SOFTLOOKUP_CORE_ATTENTION_ERROR_BUDGET_H_

#include <algorithm>

#include "core/attention/options.h"

namespace softlookup {

// What each source of error may add to the error of a SOFT answer, in the unit of max_error: the
// largest magnitude of a value's component.

// Roundings of weights and of sums of values. Sums of equal addends drift by 2e-6. Those of values
// that cancel drift by half as much, and only where values cancel do errors of logits reach their
// bound.
inline constexpr double kSumError = 1e-6;
// The same for a second look. What it leaves out may be far from the values that it adds up, even
// if these are equal.
inline constexpr double kLookSumError = 2e-6;

// Returns the bound on an answer's error.
inline double ErrorMax(const ResolvedOptions& options) {
  return std::max(kErrorBoundDefault, options.max_error);
}

// Returns the bound on the errors of logits where all rows are scanned. Logits with errors of at
// most e <= 1 weigh the rows so that the answer has an error of at most e.
inline double LogitErrorMax(const ResolvedOptions& options) {
  return std::max(kErrorBoundDefault - kSumError, options.max_error / 4);
}

// The budget of an answer that a first look leaves rows out of. A row of weight w whose logit has
// an error of e moves the answer by at most 2 (exp(e) - 1) w. So do panels of weight w that are
// left out: by 2 w, because the means of their values and of the others can be as far apart as the
// largest value and its negative. Rows of weight w whose values alone are left out, while their
// weights count, move it by w.
struct LookBudget {
  double coarse_logits = 0;  // All logits that are not formed in float64.
  double panels = 0;         // The part of the weight that panels left out may have.
  double rows = 0;           // The same for rows of the other panels.
};
inline LookBudget LookBudgetOf(const ResolvedOptions& options) {
  const double error_max = ErrorMax(options);
  return {.coarse_logits = error_max / 4,
          .panels = (error_max / 2 - kLookSumError) / 2,
          .rows = error_max / 4};
}

// Returns what rounding alone can make of the error. `looks`: whether rows are left out.
inline double ArithmeticError(const ResolvedOptions& options, bool looks) {
  return looks ? LookBudgetOf(options).coarse_logits + kLookSumError
               : LogitErrorMax(options) + kSumError;
}

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_ERROR_BUDGET_H_
