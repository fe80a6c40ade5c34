#include "core/store/kept_ranges.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "softlookup/partial_lookup.h"

namespace softlookup {

KeptRanges::KeptRanges(const StoreConfig& config, absl::string_view node)
    : has_all_(config.ranges.empty() || node.empty()) {
  if (has_all_) return;
  for (std::size_t i = 0; i < config.ranges.size(); ++i) {
    const StoreRange& range = config.ranges[i];
    if (std::ranges::find(range.nodes, node) == range.nodes.end()) continue;
    ranges_.push_back({.begin = range.begin,
                       .end = i + 1 < config.ranges.size() ? config.ranges[i + 1].begin
                                                           : PositionRange::kOpenEnd});
  }
}

bool KeptRanges::Has(std::uint64_t position) const {
  return has_all_ || std::ranges::any_of(ranges_, [position](const PositionRange& range) {
           return range.Has(position);
         });
}

absl::Status RowsNotResident(absl::string_view store, const PositionRange& rows) {
  return MakeError(
      kRowsNotResident,
      absl::StrCat("This server does not keep all rows at positions ", rows.begin, " to ", rows.end,
                   " of store \"", store, "\" in RAM; ask a router of the cluster"),
      {{"store", std::string(store)},
       {"begin", absl::StrCat(rows.begin)},
       {"end", absl::StrCat(rows.end)}});
}

}  // namespace softlookup
