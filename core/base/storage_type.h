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
  // Integer multiples of a scale. A row has one scale for its key and one for its value: the
  // largest |component| / 127, up to a rounding. The error is at most half a scale.
  kInt8 = 4,
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_STORAGE_TYPE_H_
