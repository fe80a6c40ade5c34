#ifndef SOFTLOOKUP_CORE_BASE_STORAGE_TYPE_H_
#define SOFTLOOKUP_CORE_BASE_STORAGE_TYPE_H_

#include <cstdint>

namespace softlookup {

// How a store keeps the components of its rows. Whatever reads a row, a memory or a lookup too,
// sees it as it is kept. Numbered as the wire contract's ElementType.
enum class StorageType : std::uint8_t {
  kFloat32 = 1,  // As they came.
  // Rounded to 8 bits of precision: off by at most 2^-9 of themselves, where they are not
  // subnormal; by 2^-8 where that would be infinite.
  kBfloat16 = 3,
  // Multiples of a scale, one for a row's key and one for its value: the largest |component| / 127,
  // up to a rounding. Off by at most half of it.
  kInt8 = 4,
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_STORAGE_TYPE_H_
