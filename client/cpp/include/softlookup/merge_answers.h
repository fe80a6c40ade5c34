#ifndef SOFTLOOKUP_MERGE_ANSWERS_H_
#define SOFTLOOKUP_MERGE_ANSWERS_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "softlookup/client.h"

namespace softlookup {

// Returns the answer over the rows of all `answers`. No row may count in two of them. All must be
// of the mode SOFT and answer the same queries, with equal scores and temperatures. They must count
// all their rows: the `top_k` rows of each part are not those of the whole. With a recency decay,
// the answers need equal ends, because each counts ages from its own.
//
// Let y_s, lse_s and H_s be the values, log_sum_exp and entropy of answer s to one query in one
// head. The merged answer is
//
//   lse = ln(sum_s exp(lse_s))        p_s = exp(lse_s - lse)
//   y   = sum_s p_s y_s               H   = sum_s p_s (H_s - ln p_s)
//
// in float64, without overflow. The values are rounded to float32 at the end. An answer with the
// log_sum_exp -inf, which is one over no rows, has the share p_s = 0. It adds nothing, also if its
// values are NaN. All other fields of the merged answer are:
//
//   max_logit                   The largest.
//   counted_rows, summed_rows   The sums.
//   empty                       Whether no row counts in any answer.
//   error_bound                 sum_s p_s error_bound_s, and what errors of log_sum_exp can move
//                               from one share to another. The unit is the largest magnitude of a
//                               value component in all the stores.
//   weights, weight_parts       The rows that any answer lists, each with the weight of its list
//                               times p_s, in the order of descending weight. Rows of equal weight
//                               are in the order of the answers, then of positions. None if an
//                               answer has no weights.
//   remaining_weight            sum_s p_s remaining_weight_s.
//   revision, row_count         0, because there is no one snapshot.
//   log_sum_exp_error           The largest.
//   parts                       The sum. A merged answer may be merged again.
//
// A LookupAnswer that the caller has filled may be among `answers`, such as one of attention that
// the caller computed. Without an entropy in it, that of the merged answer has no meaning.
//
// InvalidArgument, with the index of the answer, if there are no answers, if the numbers of
// queries, columns or heads differ, if an answer's lists do not have the sizes that LookupAnswer
// says, if a log_sum_exp is NaN or inf, or is -inf although the answer is not empty (it is not
// SOFT then), or if a weight is not finite.
absl::StatusOr<LookupAnswer> MergeAnswers(absl::Span<const LookupAnswer> answers);

// The same for two answers, which it does not copy.
absl::StatusOr<LookupAnswer> MergeAnswers(const LookupAnswer& first, const LookupAnswer& second);

}  // namespace softlookup

#endif  // SOFTLOOKUP_MERGE_ANSWERS_H_
