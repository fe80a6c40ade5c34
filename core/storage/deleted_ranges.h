#ifndef SOFTLOOKUP_CORE_STORAGE_DELETED_RANGES_H_
#define SOFTLOOKUP_CORE_STORAGE_DELETED_RANGES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/storage/records.h"

namespace softlookup {

// Ranges of keys whose records are deleted, and about how many bytes of disk these records still
// take. Ranges that overlap or touch count as one. Not thread-safe.
class DeletedRanges {
 public:
  // Holds at most `count_max` ranges, which must be at least 2.
  explicit DeletedRanges(std::size_t count_max);

  // Adds `range`, and joins it with the ranges that it overlaps or touches. Calls measure() once,
  // with the joined range. measure() must return about how many bytes the records in that range
  // take. If there are `count_max` ranges already, first forgets the half of them that takes the
  // fewest bytes.
  void Add(KeyRange range, absl::FunctionRef<std::uint64_t(const KeyRange&)> measure);
  void Clear();

  bool empty() const { return ranges_.empty(); }
  // Returns the sum of the bytes of all ranges.
  std::uint64_t bytes() const { return bytes_; }
  // Returns the ranges that take at least `bytes_min`, in the order of their keys.
  std::vector<KeyRange> RangesOfAtLeast(std::uint64_t bytes_min) const;

 private:
  struct Deleted {
    std::string end;          // The end of the range.
    std::uint64_t bytes = 0;  // What measure() returned.
  };
  using Ranges = std::map<std::string, Deleted>;

  // Removes the range at `it`, and returns the next one.
  Ranges::iterator Erase(Ranges::iterator it);
  // Removes the half of the ranges that takes the fewest bytes.
  void ForgetSmallest();

  const std::size_t count_max_;
  Ranges ranges_;            // By the begin of the range. No two ranges overlap or touch.
  std::uint64_t bytes_ = 0;  // The sum of `bytes` in ranges_.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_DELETED_RANGES_H_
