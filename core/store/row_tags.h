#ifndef SOFTLOOKUP_CORE_STORE_ROW_TAGS_H_
#define SOFTLOOKUP_CORE_STORE_ROW_TAGS_H_

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "core/kernels/panel.h"

namespace softlookup {

// A bit a row of a block, in the form that the kernels take.
class RowMask {
 public:
  static RowMask All() {
    RowMask mask;
    mask.words_.fill(~std::uint64_t{0});
    return mask;
  }

  static RowMask Of(const std::array<std::uint64_t, kernels::kBlockRowsMax / 64>& words) {
    RowMask mask;
    mask.words_ = words;
    return mask;
  }

  bool operator[](std::int64_t row) const { return words_[row / 64] >> (row % 64) & 1; }
  void Set(std::int64_t row) { words_[row / 64] |= Bit(row); }
  void Clear(std::int64_t row) { words_[row / 64] &= ~Bit(row); }
  std::int64_t CountFirst(std::int64_t row_count) const;  // Rows set of [0, row_count).
  const std::uint64_t* words() const { return words_.data(); }

 private:
  static std::uint64_t Bit(std::int64_t row) { return std::uint64_t{1} << (row % 64); }
  std::array<std::uint64_t, kernels::kBlockRowsMax / 64> words_ = {};
};

// The labels of a store by number, so that a row holds numbers. Labels are added and never go, so a
// snapshot may share the dictionary with the writer. Thread-safe.
class LabelDictionary {
 public:
  std::uint32_t Intern(absl::string_view label);
  std::optional<std::uint32_t> Find(absl::string_view label) const;
  // A number that Intern or Find returned. The view lives as long as the dictionary.
  absl::string_view NameOf(std::uint32_t number) const;
  std::int64_t bytes() const;

 private:
  mutable absl::Mutex mutex_;
  std::deque<std::string> names_ ABSL_GUARDED_BY(mutex_);  // Names stay where they are.
  absl::flat_hash_map<absl::string_view, std::uint32_t> numbers_ ABSL_GUARDED_BY(mutex_);
  std::int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The ids and labels of a block's rows. A block whose rows have none has no RowTags.
class RowTags {
 public:
  // Adds row `row`, not before the last one added; rows between have neither.
  void Add(std::int64_t row, std::optional<std::uint64_t> id, std::vector<std::uint32_t> labels);

  std::optional<std::uint64_t> id(std::int64_t row) const {
    if (row >= row_count() || !has_id_[row]) return std::nullopt;
    return ids_[row];
  }
  // In the order in which they were given.
  const std::vector<std::uint32_t>& labels(std::int64_t row) const {
    static const std::vector<std::uint32_t> kNone;
    return row < row_count() ? labels_[row] : kNone;
  }
  std::int64_t bytes() const;

 private:
  std::int64_t row_count() const { return static_cast<std::int64_t>(ids_.size()); }

  RowMask has_id_;
  std::vector<std::uint64_t> ids_;
  std::vector<std::vector<std::uint32_t>> labels_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_ROW_TAGS_H_
