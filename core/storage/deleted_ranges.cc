#include "core/storage/deleted_ranges.h"

#include <algorithm>
#include <iterator>

#include "core/base/check.h"

namespace softlookup {

DeletedRanges::DeletedRanges(std::size_t count_max) : count_max_(count_max) {
  SOFTLOOKUP_CHECK(count_max >= 2) << count_max << " ranges have no half to forget";
}

void DeletedRanges::Add(KeyRange range, absl::FunctionRef<std::uint64_t(const KeyRange&)> measure) {
  if (ranges_.size() >= count_max_) ForgetSmallest();
  auto it = ranges_.upper_bound(range.begin);
  if (it != ranges_.begin() && std::prev(it)->second.end >= range.begin) --it;
  while (it != ranges_.end() && it->first <= range.end) {
    range.begin = std::min(range.begin, it->first);
    range.end = std::max(range.end, it->second.end);
    it = Erase(it);
  }
  const std::uint64_t bytes = measure(range);
  bytes_ += bytes;
  ranges_[range.begin] = {.end = range.end, .bytes = bytes};
}

void DeletedRanges::Clear() {
  ranges_.clear();
  bytes_ = 0;
}

std::vector<KeyRange> DeletedRanges::RangesOfAtLeast(std::uint64_t bytes_min) const {
  std::vector<KeyRange> large;
  for (const auto& [begin, deleted] : ranges_) {
    if (deleted.bytes >= bytes_min) large.push_back({begin, deleted.end});
  }
  return large;
}

DeletedRanges::Ranges::iterator DeletedRanges::Erase(Ranges::iterator it) {
  SOFTLOOKUP_DCHECK(bytes_ >= it->second.bytes) << it->second.bytes << " of " << bytes_ << " bytes";
  bytes_ -= it->second.bytes;
  return ranges_.erase(it);
}

void DeletedRanges::ForgetSmallest() {
  std::vector<std::uint64_t> bytes;
  bytes.reserve(ranges_.size());
  for (const auto& [begin, deleted] : ranges_) bytes.push_back(deleted.bytes);
  const auto middle = bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2);
  std::nth_element(bytes.begin(), middle, bytes.end());
  // First removes ranges that take fewer bytes than *middle, then some that take as many.
  std::size_t to_forget = bytes.size() / 2;
  for (const bool equal : {false, true}) {
    for (auto it = ranges_.begin(); to_forget > 0 && it != ranges_.end();) {
      if (equal ? it->second.bytes != *middle : it->second.bytes >= *middle) {
        ++it;
        continue;
      }
      it = Erase(it);
      --to_forget;
    }
  }
}

}  // namespace softlookup
