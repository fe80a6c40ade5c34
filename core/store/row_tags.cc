#include "core/store/row_tags.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace softlookup {

std::int64_t RowMask::CountFirst(std::int64_t row_count) const {
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < row_count; row += 64) {
    const std::int64_t bits = std::min<std::int64_t>(64, row_count - row);
    const std::uint64_t kept = bits == 64 ? ~std::uint64_t{0} : Bit(bits) - 1;
    count += std::popcount(words_[row / 64] & kept);
  }
  return count;
}

std::uint32_t LabelDictionary::Intern(absl::string_view label) {
  absl::MutexLock lock(&mutex_);
  const auto found = numbers_.find(label);
  if (found != numbers_.end()) return found->second;
  const std::uint32_t number = static_cast<std::uint32_t>(names_.size());
  numbers_.emplace(names_.emplace_back(label), number);
  bytes_ +=
      static_cast<std::int64_t>(sizeof(std::string) + 2 * sizeof(absl::string_view) + label.size());
  return number;
}

std::optional<std::uint32_t> LabelDictionary::Find(absl::string_view label) const {
  absl::ReaderMutexLock lock(&mutex_);
  const auto found = numbers_.find(label);
  if (found == numbers_.end()) return std::nullopt;
  return found->second;
}

absl::string_view LabelDictionary::NameOf(std::uint32_t number) const {
  absl::ReaderMutexLock lock(&mutex_);
  return names_[number];
}

std::int64_t LabelDictionary::bytes() const {
  absl::ReaderMutexLock lock(&mutex_);
  return bytes_;
}

void RowTags::Add(std::int64_t row, std::optional<std::uint64_t> id,
                  std::vector<std::uint32_t> labels) {
  ids_.resize(row + 1);
  labels_.resize(row + 1);
  if (id) {
    has_id_.Set(row);
    ids_[row] = *id;
  }
  labels_[row] = std::move(labels);
}

std::int64_t RowTags::bytes() const {
  std::int64_t bytes = static_cast<std::int64_t>(sizeof(*this) + ids_.capacity() * sizeof(ids_[0]) +
                                                 labels_.capacity() * sizeof(labels_[0]));
  for (const auto& labels : labels_) {
    bytes += static_cast<std::int64_t>(labels.capacity() * sizeof(labels[0]));
  }
  return bytes;
}

}  // namespace softlookup
