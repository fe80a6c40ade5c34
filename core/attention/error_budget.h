#ifndef SOFTLOOKUP_CORE_ATTENTION_ERROR_BUDGET_H_
#define SOFTLOOKUP_CORE_ATTENTION_ERROR_BUDGET_H_

#include <algorithm>

#include "core/attention/options.h"

namespace softlookup {

// What each source of error may add to the error of a SOFT answer. The unit is that of max_error:
// the largest magnitude of a value's component in the store.

// The error that roundings of weights and of sums of values add where all rows are scanned, and
// that of means which ranges send to a router (docs/decisions/0029-partial-answers.md). They
// move a sum of values that cancel by up to 1e-6. They move a sum of equal values by up to 2e-6,
// which is more than kSumError. The whole error still stays within its bound, because errors of
// logits hardly move an answer whose values are equal.
inline constexpr double kSumError = 1e-6;
// The same error where a second look leaves rows out. The values that are added up may be equal,
// while the values left out are far from them. So the errors of sums and those of logits can reach
// their bounds at once.
inline constexpr double kLookSumError = 2e-6;

// Returns the largest error that the options allow.
inline double ErrorMax(const ResolvedOptions& options) {
  return std::max(kErrorBoundDefault, options.max_error);
}

// Returns the bound on the errors of logits where all rows are scanned. Errors of at most e <= 1 in
// all logits move the answer by at most e.
inline double LogitErrorMax(const ResolvedOptions& options) {
  return std::max(kErrorBoundDefault - kSumError, options.max_error / 4);
}

// How much of the error bound each source may use if a first look leaves rows out of the answer.
// Weights are given as parts of the weight of all rows.
//
// A row of weight w whose logit has an error of e moves the answer by at most 2 (exp(e) - 1) w.
//
// Panels of weight w that are left out move the answer by at most 2 w. The answer moves by w times
// the distance between the mean of their values and the mean of the others. Both means are at most
// as large as the largest value, but can have opposite signs.
//
// Rows of weight w that count, but whose values are not added up, move the answer by at most w.
// Their weights stay in the sum that the answer is divided by.
struct LookBudget {
  double coarse_logits = 0;  // The error that logits not formed in float64 may add.
  double panels = 0;         // The most weight that may be in panels left out.
  double rows = 0;           // The most weight of rows whose values alone are left out.
};
inline LookBudget LookBudgetOf(const ResolvedOptions& options) {
  const double error_max = ErrorMax(options);
  return {.coarse_logits = error_max / 4,
          .panels = (error_max / 2 - kLookSumError) / 2,
          .rows = error_max / 4};
}

// Returns a bound on the error that rounding alone makes. `looked` must be true if a first look
// chose the rows to scan.
inline double ArithmeticError(const ResolvedOptions& options, bool looked) {
  return looked ? LookBudgetOf(options).coarse_logits + kLookSumError
                : LogitErrorMax(options) + kSumError;
}

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_ERROR_BUDGET_H_
