#include "core/store/snapshot_reader.h"

namespace softlookup {

std::vector<Row> SnapshotReader::Next(std::int64_t count_max) {
  std::vector<Row> rows;
  for (; status_.ok() && block_ < selection_.blocks().size(); ++block_) {
    const PositionedBlock& selected = selection_.blocks()[block_];
    const Snapshot* const snapshot = SnapshotWith(selected.number);
    if (snapshot == nullptr) break;
    PositionedBlock block = snapshot->stored_blocks().LiveRowsOf(selected.number);
    block.row_mask = selected.row_mask;
    for (; row_ < block.view.row_count; ++row_) {
      if (static_cast<std::int64_t>(rows.size()) == count_max) return rows;
      if (selection_.Contains(block, row_)) rows.push_back(snapshot->RowOf(block, row_));
    }
    row_ = 0;
  }
  return status_.ok() ? rows : std::vector<Row>();
}

const Snapshot* SnapshotReader::SnapshotWith(std::int64_t number) {
  if (snapshot_->stored_blocks().IsResident(number)) return snapshot_.get();
  if (number != read_number_) {
    absl::StatusOr<std::shared_ptr<const Snapshot>> read = read_block_(snapshot_, number);
    if (!read.ok()) {
      status_ = read.status();
      return nullptr;
    }
    read_ = *std::move(read);
    read_number_ = number;
  }
  return read_.get();
}

}  // namespace softlookup
