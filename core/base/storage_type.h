#ifndef SOFTLOOKUP_CORE_BASE_STORAGE_TYPE_H_
#define SOFTLOOKUP_CORE_BASE_STORAGE_TYPE_H_

#include <cstdint>

namespace softlookup {

// How a store keeps the components of its rows. All readers, including memories and lookups, see
// the stored components. The enumerators have the numbers of ElementType in the wire contract.
enum class StorageType : std::uint8_t {
  kFloat32 = 1,  // Components are kept unchanged.
  // Rounded to nearest with 8 bits of precision, but truncated where rounding would give infinity.
  // The relative error of a normal number is at most 2^-8.
  kBfloat16 = 3,
  // Integer multiples of a scale. A row's key has a scale, and its value has another. Each is the
  // largest |component| of its vector, divided by 127 and rounded to float32. The error of a
  // component is at most half the scale.
  kInt8 = 4,
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_STORAGE_TYPE_H_
