#ifndef SOFTLOOKUP_CORE_STORE_KEPT_RANGES_H_
#define SOFTLOOKUP_CORE_STORE_KEPT_RANGES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "softlookup/row.h"
#include "softlookup/store_config.h"

namespace softlookup {

// The positions of a store whose blocks a server keeps in RAM, once they are full: those of the
// ranges that it answers for. Its log has all rows (docs/decisions/0031-rows-in-ram.md).
class KeptRanges {
 public:
  // All positions.
  KeptRanges() = default;
  // Those that `node` keeps of a store with this configuration. All, if the store has no ranges, or
  // if `node` is empty: the server is in no group.
  KeptRanges(const StoreConfig& config, absl::string_view node);

  bool has_all() const { return has_all_; }
  // Ranges end between blocks, so all positions of a full block have the same result.
  bool Has(std::uint64_t position) const;

 private:
  bool has_all_ = true;
  std::vector<PositionRange> ranges_;
};

// Returns the error kRowsNotResident (partial_lookup.h) of a call that has to read `rows`.
absl::Status RowsNotResident(absl::string_view store, const PositionRange& rows);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_KEPT_RANGES_H_
