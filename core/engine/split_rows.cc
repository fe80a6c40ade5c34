#include "core/engine/split_rows.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/kernels/panel.h"

namespace softlookup {
namespace {

// Takes the parts of a record off its front.
class RowsLeft {
 public:
  explicit RowsLeft(const RowsRecord& rows)
      : rows_(rows),
        row_bytes_(rows.components.size() / rows.row_count),
        next_id_(rows.ids.begin()) {}

  RowsRecord Take(std::uint32_t count) {
    RowsRecord part{.row_count = count,
                    .components = rows_.components.substr(row_ * row_bytes_, count * row_bytes_)};
    TakeIds(part);
    if (!rows_.row_labels.empty()) {
      const auto labels = rows_.row_labels.begin() + static_cast<std::ptrdiff_t>(row_);
      part.row_labels.assign(labels, labels + count);
    }
    row_ += count;
    return part;
  }

 private:
  void TakeIds(RowsRecord& part) {
    if (rows_.ids.empty()) return;
    std::ptrdiff_t count = part.row_count;
    if (!rows_.has_id.empty()) {
      const auto has_id = rows_.has_id.begin() + static_cast<std::ptrdiff_t>(row_);
      part.has_id.assign(has_id, has_id + count);
      count = std::ranges::count(part.has_id, true);
      if (count == 0 || count == part.row_count) part.has_id.clear();  // All are the same.
    }
    part.ids.assign(next_id_, next_id_ + count);
    next_id_ += count;
  }

  const RowsRecord& rows_;
  const std::size_t row_bytes_;
  std::size_t row_ = 0;  // The first row that is left.
  std::vector<std::uint64_t>::const_iterator next_id_;
};

}  // namespace

absl::Status SplitRows(
    std::uint64_t first_position, const RowsRecord& rows, std::uint64_t rows_max,
    absl::FunctionRef<absl::Status(std::uint64_t first_position, const RowsRecord& part)> visit) {
  SOFTLOOKUP_CHECK(rows_max > 0 && rows_max % kernels::kPanelRows == 0) << rows_max;
  if (rows.row_count == 0) return absl::OkStatus();
  RowsLeft left(rows);
  const std::uint64_t end = first_position + rows.row_count;
  for (std::uint64_t begin = first_position, part_end = 0; begin < end; begin = part_end) {
    part_end = std::min(end, (begin / rows_max + 1) * rows_max);
    SOFTLOOKUP_RETURN_IF_ERROR(
        visit(begin, left.Take(static_cast<std::uint32_t>(part_end - begin))));
  }
  return absl::OkStatus();
}

}  // namespace softlookup
