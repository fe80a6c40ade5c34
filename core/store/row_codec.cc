#include "core/store/row_codec.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "core/kernels/panel_rows.h"

namespace softlookup {
namespace {

using kernels::kPanelRows;

// Calls whole(panel) for each panel whose 16 positions all lie in [begin, end). Calls
// single(panel, lane) for each other row of that range. The calls are in the order of positions.
// Panel i holds positions [16 * i, 16 * i + 16).
template <typename Whole, typename Single>
void ForEachRun(std::uint64_t begin, std::uint64_t end, const Whole& whole, const Single& single) {
  for (std::uint64_t position = begin; position < end;) {
    const std::int64_t panel = static_cast<std::int64_t>(position) / kPanelRows;
    const std::int64_t lane = static_cast<std::int64_t>(position) % kPanelRows;
    if (lane == 0 && end - position >= kPanelRows) {
      whole(panel);
      position += kPanelRows;
    } else {
      single(panel, lane);
      ++position;
    }
  }
}

}  // namespace

std::string EncodeComponents(const StoredBlocks& blocks, std::uint64_t begin, std::uint64_t end) {
  const std::int64_t block_panels = blocks.block_rows() / kPanelRows;
  const kernels::PanelShape& shape = blocks.shape();
  std::string components;
  components.resize((end - begin) * static_cast<std::uint64_t>(shape.row_bytes()));
  auto* next = reinterpret_cast<std::byte*>(components.data());
  const auto panel_at = [&](std::int64_t panel) {
    return blocks.AllRowsOf(panel / block_panels).panel(panel % block_panels);
  };
  ForEachRun(
      begin, end,
      [&](std::int64_t panel) {
        std::memcpy(next, panel_at(panel), static_cast<std::size_t>(shape.bytes()));
        next += shape.bytes();
      },
      [&](std::int64_t panel, std::int64_t lane) {
        kernels::PackRow(shape, panel_at(panel), lane, next);
        next += shape.row_bytes();
      });
  return components;
}

std::string EncodeKeptComponents(const StoredBlocks& blocks, std::int64_t index) {
  const kernels::PanelShape& shape = blocks.shape();
  const kernels::BlockView rows = blocks.LiveRowsOf(index).view;
  std::string components;
  components.resize(static_cast<std::size_t>(rows.row_count * shape.row_bytes()));
  auto* next = reinterpret_cast<std::byte*>(components.data());
  for (std::int64_t row = 0; row < rows.row_count; ++row, next += shape.row_bytes()) {
    kernels::PackRow(shape, rows.panel(row / kPanelRows), row % kPanelRows, next);
  }
  return components;
}

void DecodeComponents(absl::string_view components, const kernels::PanelShape& shape,
                      std::uint64_t begin, std::uint64_t end,
                      absl::FunctionRef<std::byte*(std::int64_t)> panel_of) {
  const auto* next = reinterpret_cast<const std::byte*>(components.data());
  ForEachRun(
      begin, end,
      [&](std::int64_t panel) {
        std::memcpy(panel_of(panel), next, static_cast<std::size_t>(shape.bytes()));
        next += shape.bytes();
      },
      [&](std::int64_t panel, std::int64_t lane) {
        kernels::UnpackRow(shape, next, lane, panel_of(panel));
        next += shape.row_bytes();
      });
}

void DecodeRowsOfBlock(absl::string_view components, const kernels::PanelShape& shape,
                       std::uint64_t begin, std::uint64_t end, std::int64_t block_rows,
                       std::int64_t block, PanelBuffer& panels) {
  const auto block_begin = static_cast<std::uint64_t>(block * block_rows);
  const std::uint64_t first = std::max(begin, block_begin);
  const std::uint64_t last = std::min(end, block_begin + static_cast<std::uint64_t>(block_rows));
  // Blocks end between panels, so EncodeComponents has put no panel across this block's ends.
  components.remove_prefix((first - begin) * static_cast<std::uint64_t>(shape.row_bytes()));
  const std::int64_t first_panel = block * block_rows / kPanelRows;
  DecodeComponents(components, shape, first, last,
                   [&](std::int64_t panel) { return panels.panel(panel - first_panel); });
}

std::shared_ptr<const PackedRows> DecodeKeptRows(absl::string_view components,
                                                 const kernels::PanelShape& shape,
                                                 std::int64_t block_rows, const RowMask& kept) {
  auto packed = std::make_shared<PackedRows>();
  for (std::int64_t row = 0; row < block_rows; ++row) {
    if (kept[row]) packed->offsets.push_back(static_cast<std::uint16_t>(row));
  }
  packed->offsets.shrink_to_fit();
  if (components.empty()) return packed;
  const std::int64_t count = packed->row_count();
  auto panels = std::make_shared<PanelBuffer>(shape, (count + kPanelRows - 1) / kPanelRows);
  const auto* next = reinterpret_cast<const std::byte*>(components.data());
  for (std::int64_t row = 0; row < count; ++row, next += shape.row_bytes()) {
    kernels::UnpackRow(shape, next, row % kPanelRows, panels->panel(row / kPanelRows));
  }
  packed->panels = std::move(panels);
  return packed;
}

}  // namespace softlookup
