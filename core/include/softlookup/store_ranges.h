#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_STORE_RANGES_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_STORE_RANGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "softlookup/store_config.h"

namespace softlookup {

// Each range of a store begins at a multiple of this many positions: 8 blocks of the store.
// `config` must have valid dimensions.
std::uint64_t RangeStep(const StoreConfig& config);

// Checks that `nodes` can be those of a range: 1 to kRangeNodeCountMax different names. `field`
// names them in the error.
absl::Status CheckRangeNodes(absl::string_view field, const std::vector<std::string>& nodes);

// Checks that `ranges` can be those of a store with this configuration: at most kRangeCountMax, the
// first of which begins at 0, each further one at a larger multiple of RangeStep(), all with nodes
// of CheckRangeNodes(). `field` names them in the error.
absl::Status CheckStoreRanges(absl::string_view field, const std::vector<StoreRange>& ranges,
                              const StoreConfig& config);

// Cuts the rows that `store` has into `count` ranges of about equal size. Range i gets node
// i % nodes.size(); `nodes` must not be empty. If the store has ranges already, its rows keep their
// nodes, and a range also ends where the nodes change. Returns no ranges for a `count` of 1: the
// store is whole. INVALID_OPTION, about the field `range_count`, if `count` is not in [1,
// kRangeCountMax], or if the store has fewer steps of RangeStep().
absl::StatusOr<std::vector<StoreRange>> EqualRanges(const StoreInfo& store, std::uint64_t count,
                                                    const std::vector<std::string>& nodes);

// Returns the ranges of `store` with other nodes for the one that begins at `begin`.
// INVALID_OPTION, about the field `begin`, if none does.
absl::StatusOr<std::vector<StoreRange>> WithNodes(const StoreInfo& store, std::uint64_t begin,
                                                  std::vector<std::string> nodes);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_STORE_RANGES_H_
