#include "core/store/row_codec.h"

#include <cstring>

namespace softlookup {
namespace {

using kernels::kPanelRows;

// Calls whole(panel) for each panel that [begin, end) covers and single(panel, lane) for the rows
// beside those, in order.
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

std::string EncodeComponents(const Snapshot& snapshot, std::uint64_t begin, std::uint64_t end) {
  const std::int64_t block_panels = snapshot.block_rows() / kPanelRows;
  const kernels::PanelShape shape{.key_dim = snapshot.config().key_dim,
                                  .value_dim = snapshot.config().value_dim};
  std::string components;
  components.resize((end - begin) * static_cast<std::uint64_t>(shape.floats() / kPanelRows * 4));
  char* next = components.data();
  const auto put = [&next](const float* floats, std::int64_t count) {
    std::memcpy(next, floats, count * sizeof(float));
    next += count * sizeof(float);
  };
  const auto panel_at = [&](std::int64_t panel) {
    return snapshot.HistoryAt(panel / block_panels).panel(panel % block_panels);
  };
  ForEachRun(
      begin, end, [&](std::int64_t panel) { put(panel_at(panel), shape.floats()); },
      [&](std::int64_t panel, std::int64_t lane) {
        const float* floats = panel_at(panel);
        for (std::int64_t dim = 0; dim < shape.key_dim; ++dim) {
          put(floats + shape.key_offset(lane, dim), 1);
        }
        put(floats + shape.value_offset(lane), shape.value_dim);
      });
  return components;
}

void DecodeComponents(absl::string_view components, const kernels::PanelShape& shape,
                      std::uint64_t begin, std::uint64_t end,
                      absl::FunctionRef<float*(std::int64_t)> panel_of) {
  const char* next = components.data();
  const auto get = [&next](float* floats, std::int64_t count) {
    std::memcpy(floats, next, count * sizeof(float));
    next += count * sizeof(float);
  };
  ForEachRun(
      begin, end, [&](std::int64_t panel) { get(panel_of(panel), shape.floats()); },
      [&](std::int64_t panel, std::int64_t lane) {
        float* floats = panel_of(panel);
        for (std::int64_t dim = 0; dim < shape.key_dim; ++dim) {
          get(floats + shape.key_offset(lane, dim), 1);
        }
        get(floats + shape.value_offset(lane), shape.value_dim);
      });
}

}  // namespace softlookup
