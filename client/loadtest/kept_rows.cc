#include "client/loadtest/kept_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "absl/types/span.h"

namespace softlookup::loadtest {
namespace {

float ToBfloat16(float component) {
  const auto bits = std::bit_cast<std::uint32_t>(component);
  const std::uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  return std::bit_cast<float>(rounded & 0xffff0000);
}

void RoundToInt8(absl::Span<float> row) {
  constexpr float kMost = 127;
  float largest = 0;
  for (const float component : row) largest = std::max(largest, std::abs(component));
  if (largest == 0) return;
  // Finds the least scale that reaches the largest component when it is multiplied by 127, as the
  // server does.
  float scale = largest / kMost;
  if (scale * kMost < largest) scale = std::nextafter(scale, largest);
  for (float& component : row) component = scale * std::nearbyint(component / scale);
}

}  // namespace

void RoundAsKept(v1::ElementType storage, FloatMatrix* rows) {
  if (storage == v1::ELEMENT_TYPE_BFLOAT16) {
    for (float& component : rows->data) component = ToBfloat16(component);
  } else if (storage == v1::ELEMENT_TYPE_INT8) {
    for (std::uint32_t r = 0; r < rows->rows; ++r) {
      RoundToInt8(absl::MakeSpan(rows->data).subspan(std::size_t{r} * rows->cols, rows->cols));
    }
  }
}

}  // namespace softlookup::loadtest
