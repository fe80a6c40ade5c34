#ifndef SOFTLOOKUP_CORE_ENGINE_RANGE_ROWS_H_
#define SOFTLOOKUP_CORE_ENGINE_RANGE_ROWS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/store/snapshot.h"
#include "core/store/store.h"
#include "softlookup/engine.h"
#include "softlookup/store_config.h"

namespace softlookup {

// Returns what `plan` makes of the store as `snapshot` shows it, or why that cannot be the ranges
// of the store. An error of CheckStoreRanges() is about the field `ranges`.
absl::StatusOr<std::vector<StoreRange>> PlanOf(const Snapshot& snapshot, const Store& store,
                                               Engine::RangesOf plan);

// Counts the rows that each of `ranges` has in `snapshot`. CheckStoreRanges() must accept them;
// they need not be those of the store. Takes time in proportion to the blocks of the store.
RangesInfo CountRows(const Snapshot& snapshot, const std::vector<StoreRange>& ranges);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_RANGE_ROWS_H_
