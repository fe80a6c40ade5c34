#include "core/kernels/panel_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace softlookup::kernels {
namespace {

float LoadFloat(const std::byte* at) {
  float value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// Rounds to nearest, ties to even. Truncates finite numbers that would round to infinity.
std::uint16_t ToBfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  const bool overflows = (rounded & 0x7f800000) == 0x7f800000;
  return static_cast<std::uint16_t>((overflows ? bits : rounded) >> 16);
}

// Writes component i to the address at(i), for i < count. For INT8, also writes the scale of the
// components to `scale_at`.
template <typename At>
void Put(const PanelShape& shape, const float* components, std::int64_t count, std::byte* scale_at,
         const At& at) {
  switch (shape.storage) {
    case StorageType::kFloat32:
      for (std::int64_t i = 0; i < count; ++i) std::memcpy(at(i), components + i, 4);
      return;
    case StorageType::kBfloat16:
      for (std::int64_t i = 0; i < count; ++i) {
        const std::uint16_t element = ToBfloat16(components[i]);
        std::memcpy(at(i), &element, sizeof(element));
      }
      return;
    case StorageType::kInt8:
      break;
  }
  float magnitude = 0;
  for (std::int64_t i = 0; i < count; ++i) magnitude = std::max(magnitude, std::abs(components[i]));
  // 127 times the scale must reach the largest component, so that no integer is beyond 127. If the
  // division rounded the scale down, the next larger float is taken. Otherwise a subnormal scale
  // could be far too small. If 127 times the scale overflows, the next smaller float is taken,
  // because decoded components must be finite.
  float scale = magnitude / kInt8Max;
  if (scale * kInt8Max < magnitude) scale = std::nextafter(scale, magnitude);
  if (!std::isfinite(scale * kInt8Max)) scale = std::nextafter(scale, 0.0f);
  std::memcpy(scale_at, &scale, sizeof(scale));
  for (std::int64_t i = 0; i < count; ++i) {
    const float number = scale == 0 ? 0 : std::nearbyint(components[i] / scale);
    *at(i) = static_cast<std::byte>(static_cast<std::int8_t>(number));
  }
}

// Decodes component i from the address at(i), for i < count. For BFLOAT16 and INT8 only, because
// FLOAT32 rows are read in place.
template <typename At>
void Get(const PanelShape& shape, const std::byte* scale_at, const At& at, std::int64_t count,
         float* components) {
  const float scale = shape.storage == StorageType::kInt8 ? LoadFloat(scale_at) : 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::byte* element = at(i);
    if (shape.storage == StorageType::kInt8) {
      components[i] = scale * static_cast<float>(static_cast<std::int8_t>(*element));
    } else {
      std::uint16_t bits;
      std::memcpy(&bits, element, sizeof(bits));
      components[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
    }
  }
}

// Calls move(address in `panel`, address in `row`, bytes) for each part of the row `lane` that is
// contiguous in `panel` and in `row`.
template <typename Panel, typename Row, typename Move>
void ForEachPart(const PanelShape& shape, Panel* panel, std::int64_t lane, Row* row,
                 const Move& move) {
  const std::int64_t element = shape.element_bytes();
  for (std::int64_t dim = 0; dim < shape.key_dim; ++dim, row += element) {
    move(panel + shape.key_offset(lane, dim), row, element);
  }
  move(panel + shape.value_offset(lane), row, shape.value_dim * element);
  row += shape.value_dim * element;
  if (shape.storage != StorageType::kInt8) return;
  move(panel + shape.key_scale_offset(lane), row, 4);
  move(panel + shape.value_scale_offset(lane), row + 4, 4);
}

}  // namespace

PanelRowReader::PanelRowReader(const PanelShape& shape) : shape_(shape) {
  if (shape.storage == StorageType::kFloat32) return;
  key_.resize(static_cast<std::size_t>(shape.key_dim));
  value_.resize(static_cast<std::size_t>(shape.value_dim));
}

PanelRow PanelRowReader::Read(const std::byte* panel, std::int64_t lane) {
  if (shape_.storage == StorageType::kFloat32) {
    return {.key = reinterpret_cast<const float*>(panel + shape_.key_offset(lane, 0)),
            .key_stride = kPanelRows,
            .value = reinterpret_cast<const float*>(panel + shape_.value_offset(lane))};
  }
  Get(
      shape_, panel + shape_.key_scale_offset(lane),
      [&](std::int64_t i) { return panel + shape_.key_offset(lane, i); }, shape_.key_dim,
      key_.data());
  return {.key = key_.data(),
          .value = ReadValue(shape_, panel, lane, {.begin = 0, .count = shape_.value_dim},
                             value_.data())};
}

const float* ReadValue(const PanelShape& shape, const std::byte* panel, std::int64_t lane,
                       DimRange dims, float* buffer) {
  const std::int64_t bytes = shape.element_bytes();
  const std::byte* value = panel + shape.value_offset(lane) + dims.begin * bytes;
  if (shape.storage == StorageType::kFloat32) return reinterpret_cast<const float*>(value);
  Get(
      shape, panel + shape.value_scale_offset(lane),
      [&](std::int64_t i) { return value + i * bytes; }, dims.count, buffer);
  return buffer;
}

void PutRow(const PanelShape& shape, const float* key, const float* value, std::int64_t lane,
            std::byte* panel) {
  Put(shape, key, shape.key_dim, panel + shape.key_scale_offset(lane),
      [&](std::int64_t i) { return panel + shape.key_offset(lane, i); });
  std::byte* values = panel + shape.value_offset(lane);
  Put(shape, value, shape.value_dim, panel + shape.value_scale_offset(lane),
      [&](std::int64_t i) { return values + i * shape.element_bytes(); });
}

void PackRow(const PanelShape& shape, const std::byte* panel, std::int64_t lane, std::byte* row) {
  ForEachPart(shape, panel, lane, row,
              [](const std::byte* from, std::byte* to, std::int64_t bytes) {
                std::memcpy(to, from, static_cast<std::size_t>(bytes));
              });
}

void UnpackRow(const PanelShape& shape, const std::byte* row, std::int64_t lane, std::byte* panel) {
  ForEachPart(shape, panel, lane, row,
              [](std::byte* to, const std::byte* from, std::int64_t bytes) {
                std::memcpy(to, from, static_cast<std::size_t>(bytes));
              });
}

}  // namespace softlookup::kernels
