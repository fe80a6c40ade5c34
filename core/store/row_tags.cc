#include "core/store/row_tags.h"

#include <algorithm>

#include "core/memory/heap_bytes.h"

namespace softlookup {

std::uint32_t LabelDictionary::Intern(absl::string_view label) {
  absl::MutexLock lock(&mutex_);
  const auto found = numbers_.find(label);
  if (found != numbers_.end()) return found->second;
  const std::uint32_t number = static_cast<std::uint32_t>(names_.size());
  numbers_.emplace(names_.emplace_back(label), number);
  name_bytes_ += HeapBytes(names_.back());
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

std::uint32_t LabelDictionary::size() const {
  absl::ReaderMutexLock lock(&mutex_);
  return static_cast<std::uint32_t>(names_.size());
}

void LabelDictionary::Truncate(std::uint32_t size) {
  absl::MutexLock lock(&mutex_);
  if (names_.size() <= size) return;
  while (names_.size() > size) {
    numbers_.erase(names_.back());
    name_bytes_ -= HeapBytes(names_.back());
    names_.pop_back();
  }
  numbers_.rehash(0);
}

std::int64_t LabelDictionary::bytes() const {
  // libstdc++'s deque keeps names in pieces of 512 bytes, and has room for at least 8 pointers to
  // pieces.
  constexpr std::size_t kPieceBytes = 512;
  absl::ReaderMutexLock lock(&mutex_);
  const std::size_t pieces = names_.size() * sizeof(std::string) / kPieceBytes + 1;
  return SharedBytes<LabelDictionary>() + name_bytes_ +
         static_cast<std::int64_t>(pieces) * HeapBytes(kPieceBytes) +
         HeapBytes(std::max<std::size_t>(8, pieces + 2) * sizeof(void*)) +
         HashTableBytes(numbers_.capacity(), sizeof(*numbers_.begin()));
}

void RowTags::Add(std::int64_t row, std::optional<std::uint64_t> id,
                  absl::Span<const std::uint32_t> labels) {
  if (id) {
    has_id_.Set(row);
    ids_.push_back(*id);
  }
  if (labels.empty()) return;
  label_ends_.resize(row + 1, static_cast<std::uint16_t>(labels_.size()));
  labels_.insert(labels_.end(), labels.begin(), labels.end());
  label_ends_[row] = static_cast<std::uint16_t>(labels_.size());
}

std::shared_ptr<const RowTags> RowTags::Only(const RowMask& kept) const {
  std::shared_ptr<RowTags> tags;
  for (std::int64_t row = 0; row < kernels::kBlockRowsMax; ++row) {
    if (!kept[row] || (!has_id_[row] && labels(row).empty())) continue;
    if (tags == nullptr) tags = std::make_shared<RowTags>();
    tags->Add(row, id(row), labels(row));
  }
  if (tags != nullptr) tags->ShrinkToFit();
  return tags;
}

void RowTags::ShrinkToFit() {
  ids_.shrink_to_fit();
  labels_.shrink_to_fit();
  label_ends_.shrink_to_fit();
}

std::int64_t RowTags::bytes() const {
  return SharedBytes<RowTags>() + HeapBytes(ids_) + HeapBytes(labels_) + HeapBytes(label_ends_);
}

}  // namespace softlookup
