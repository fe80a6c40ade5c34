#include "core/attention/row_values.h"

#include <algorithm>
#include <cstddef>

#include "core/base/check.h"
#include "core/kernels/panel_rows.h"

namespace softlookup {

bool RowValues::Has(std::uint64_t position) const {
  if (IsMemory(position)) return true;
  if (position < task_.begin || position >= task_.end) return false;
  const PositionedBlock* block = BlockWith(position);
  if (block == nullptr) return false;
  const std::int64_t row = block->FirstRowFrom(position);
  return row < block->view.row_count && block->PositionOf(row) == position && block->MayCount(row);
}

std::vector<double> RowValues::SumOf(std::int64_t head, absl::Span<const WeighedRow> rows,
                                     absl::FunctionRef<bool()> continues) const {
  // Rows that are added between two checks of continues(). This is at most a few milliseconds'
  // work.
  constexpr std::size_t kRowsBetweenChecks = 1 << 15;
  std::vector<double> sum(static_cast<std::size_t>(head_value_dim_));
  std::vector<float> buffer(static_cast<std::size_t>(head_value_dim_));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % kRowsBetweenChecks == 0 && !continues()) return sum;
    Add(head, rows[i], sum, buffer);
  }
  return sum;
}

const PositionedBlock* RowValues::BlockWith(std::uint64_t position) const {
  const auto after = std::upper_bound(
      task_.blocks.begin(), task_.blocks.end(), position,
      [](std::uint64_t p, const PositionedBlock& block) { return p < block.first_position; });
  if (after == task_.blocks.begin()) return nullptr;
  const PositionedBlock& block = *(after - 1);
  return position < block.end_position() ? &block : nullptr;
}

void RowValues::Add(std::int64_t head, const WeighedRow& row, std::vector<double>& sum,
                    std::vector<float>& buffer) const {
  const std::int64_t offset = head * head_value_dim_;
  if (IsMemory(row.position)) {
    const double* value = task_.memory->value + offset;
    for (std::int64_t i = 0; i < head_value_dim_; ++i) sum[i] += row.weight * value[i];
    return;
  }
  const PositionedBlock* block = BlockWith(row.position);
  SOFTLOOKUP_CHECK(block != nullptr) << "no block has position " << row.position;
  const std::int64_t index = block->FirstRowFrom(row.position);
  SOFTLOOKUP_DCHECK(index < block->view.row_count && block->PositionOf(index) == row.position)
      << "position " << row.position << " has no row";
  const float* value = kernels::ReadValue(
      block->view.shape, block->view.panel(index / kernels::kPanelRows),
      index % kernels::kPanelRows, {.begin = offset, .count = head_value_dim_}, buffer.data());
  for (std::int64_t i = 0; i < head_value_dim_; ++i) sum[i] += row.weight * value[i];
}

}  // namespace softlookup
