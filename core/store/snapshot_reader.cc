#include "core/store/snapshot_reader.h"

#include <algorithm>

namespace softlookup {

std::vector<Row> SnapshotReader::Next(std::int64_t count_max) {
  std::vector<Row> rows;
  for (; block_ < selection_.blocks().size(); ++block_) {
    const PositionedBlock& block = selection_.blocks()[block_];
    const std::uint64_t end = std::min(block.end_position(), selection_.end());
    for (; position_ < end; ++position_) {
      if (static_cast<std::int64_t>(rows.size()) == count_max) return rows;
      if (selection_.Contains(block, position_)) rows.push_back(snapshot_->RowAt(block, position_));
    }
  }
  return rows;
}

}  // namespace softlookup
