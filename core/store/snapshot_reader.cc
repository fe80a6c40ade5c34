#include "core/store/snapshot_reader.h"

#include <algorithm>

namespace softlookup {

std::vector<Row> SnapshotReader::Next(std::int64_t count_max) {
  std::vector<Row> rows;
  for (; block_ < selection_.blocks().size(); ++block_) {
    const PositionedBlock& block = selection_.blocks()[block_];
    for (; row_ < block.view.row_count; ++row_) {
      if (static_cast<std::int64_t>(rows.size()) == count_max) return rows;
      if (selection_.Contains(block, row_)) rows.push_back(snapshot_->RowOf(block, row_));
    }
    row_ = 0;
  }
  return rows;
}

}  // namespace softlookup
