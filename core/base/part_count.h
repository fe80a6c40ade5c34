#ifndef SOFTLOOKUP_CORE_BASE_PART_COUNT_H_
#define SOFTLOOKUP_CORE_BASE_PART_COUNT_H_

#include <cstdint>

namespace softlookup {

// Returns the least number of parts of at most `part` each that `total` can be cut into.
constexpr std::int64_t PartCount(std::int64_t total, std::int64_t part) {
  return (total + part - 1) / part;
}

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_PART_COUNT_H_
