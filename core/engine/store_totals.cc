#include "core/engine/store_totals.h"

namespace softlookup {

void StoreTotals::AddStore(const Snapshot& snapshot) {
  ++stores_;
  rows_ += static_cast<std::int64_t>(snapshot.row_count());
  live_rows_ += static_cast<std::int64_t>(snapshot.live_row_count());
}

void StoreTotals::RemoveStore(const Snapshot& snapshot) {
  --stores_;
  rows_ -= static_cast<std::int64_t>(snapshot.row_count());
  live_rows_ -= static_cast<std::int64_t>(snapshot.live_row_count());
}

void StoreTotals::AddWrite(const StoreConfig& config, const StoreChange& change) {
  rows_ += change.rows;
  live_rows_ += change.live_rows;
  appended_rows_ += change.rows;
  appended_bytes_ += 4 * change.rows * (config.key_dim + config.value_dim);
}

}  // namespace softlookup
