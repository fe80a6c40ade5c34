#ifndef SOFTLOOKUP_CORE_ENGINE_LOOKUP_PART_H_
#define SOFTLOOKUP_CORE_ENGINE_LOOKUP_PART_H_

#include "absl/status/statusor.h"
#include "core/attention/attention_task.h"
#include "core/base/cancellation.h"
#include "core/engine/lookup_task.h"
#include "softlookup/partial_lookup.h"
#include "softlookup/row.h"

namespace softlookup {

// What a range answers to a lookup. `task` must have been selected with this range as its part, and
// `answer` must be that of task.attention().
PartialLookup PartialLookupOf(const LookupTask& task, const PositionRange& range,
                              AttentionAnswer answer);

// What a range answers in the second phase. `task` must be as above, and its snapshot must be that
// of the first phase. SHAPE_MISMATCH if the request has another number of head queries.
// POSITION_OUT_OF_RANGE if it names a row that the task does not attend to, or a weight that is not
// finite. Stops with the error of cancel.Check() once that is one.
absl::StatusOr<RowSums> SumRows(const LookupTask& task, const RowSumsRequest& request,
                                const CancelToken& cancel);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_LOOKUP_PART_H_
