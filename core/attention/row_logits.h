#ifndef SOFTLOOKUP_CORE_ATTENTION_ROW_LOGITS_H_
#define SOFTLOOKUP_CORE_ATTENTION_ROW_LOGITS_H_

#include <cstdint>
#include <vector>

#include "core/attention/block_scan.h"
#include "core/kernels/logits.h"

namespace softlookup {

// Returns the rows of the block at positions in [query.begin, query.end). The range can include
// rows that the block's mask leaves out.
kernels::RowRange RowsOf(const PositionedBlock& block, const HeadQuery& query);

// Returns the parameters that turn the query's sums over components (score_rows.h) into logits. The
// caller must set two members: `key_norms` for cosines, and `ages` if the block has row_offsets and
// the plan has a decay.
kernels::LogitParams LogitParamsOf(const ScanPlan& plan, const PositionedBlock& block,
                                   const HeadQuery& query);

// Adds to `collector` the rows among `rows` that count and that `collector` wants. Adds none once
// plan.collected_rows_left is used up. `scores` and `logits` are by row of the block. `max_logit`
// must be at least as large as the logits of `rows`. `buffer` is scratch space.
void CollectRows(const ScanPlan& plan, const PositionedBlock& block, kernels::RowRange rows,
                 double max_logit, const double* scores, const double* logits,
                 std::vector<CountedRow>& buffer, TopRows& collector);

// Returns the first of `rows` whose logit is `logit`. There must be one.
std::int64_t FirstRowWith(double logit, const double* logits, kernels::RowRange rows);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_ROW_LOGITS_H_
