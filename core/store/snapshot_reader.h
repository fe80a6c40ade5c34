#ifndef SOFTLOOKUP_CORE_STORE_SNAPSHOT_READER_H_
#define SOFTLOOKUP_CORE_STORE_SNAPSHOT_READER_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/store/row_selection.h"
#include "core/store/snapshot.h"
#include "softlookup/engine.h"

namespace softlookup {

// Reads the rows of a selection from one snapshot. The reader holds the snapshot until the reader
// is destroyed.
class SnapshotReader final : public RowReader {
 public:
  SnapshotReader(std::shared_ptr<const Snapshot> snapshot, RowSelection selection)
      : snapshot_(std::move(snapshot)), selection_(std::move(selection)) {}

  std::vector<Row> Next(std::int64_t count_max) override;
  std::uint64_t revision() const override { return snapshot_->revision(); }
  std::int64_t row_bytes() const override {
    return 4 * (snapshot_->config().key_dim + snapshot_->config().value_dim);
  }

 private:
  const std::shared_ptr<const Snapshot> snapshot_;
  const RowSelection selection_;
  std::size_t block_ = 0;  // Index in selection_.blocks().
  std::int64_t row_ = 0;   // Row in that block.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_SNAPSHOT_READER_H_
