#ifndef SOFTLOOKUP_CORE_STORE_SNAPSHOT_READER_H_
#define SOFTLOOKUP_CORE_STORE_SNAPSHOT_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/store/row_selection.h"
#include "core/store/snapshot.h"
#include "softlookup/engine.h"

namespace softlookup {

// Reads the rows of a selection from one snapshot. The reader holds the snapshot until the reader
// is destroyed.
class SnapshotReader final : public RowReader {
 public:
  // Returns the snapshot, but with the rows of a block that is not resident.
  using ReadBlock = std::function<absl::StatusOr<std::shared_ptr<const Snapshot>>(
      const std::shared_ptr<const Snapshot>&, std::int64_t index)>;

  SnapshotReader(std::shared_ptr<const Snapshot> snapshot, RowSelection selection,
                 ReadBlock read_block)
      : snapshot_(std::move(snapshot)),
        selection_(std::move(selection)),
        read_block_(std::move(read_block)) {}

  std::vector<Row> Next(std::int64_t count_max) override;
  const absl::Status& status() const override { return status_; }
  std::uint64_t revision() const override { return snapshot_->revision(); }
  std::int64_t row_bytes() const override {
    return 4 * (snapshot_->config().key_dim + snapshot_->config().value_dim);
  }

 private:
  // Returns a snapshot that has the rows of the block `number`. Null: status_ says why not.
  const Snapshot* SnapshotWith(std::int64_t number);

  const std::shared_ptr<const Snapshot> snapshot_;
  const RowSelection selection_;
  const ReadBlock read_block_;
  std::shared_ptr<const Snapshot> read_;  // What read_block_ returned last.
  std::int64_t read_number_ = -1;         // The block whose rows read_ has.
  absl::Status status_;
  std::size_t block_ = 0;  // Index in selection_.blocks().
  std::int64_t row_ = 0;   // Row in that block.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_SNAPSHOT_READER_H_
