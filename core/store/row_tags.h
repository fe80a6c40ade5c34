#ifndef SOFTLOOKUP_CORE_STORE_ROW_TAGS_H_
#define SOFTLOOKUP_CORE_STORE_ROW_TAGS_H_

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "core/base/limits.h"
#include "core/kernels/panel.h"
#include "core/store/row_mask.h"

namespace softlookup {

// Numbers the labels of a store's rows from 0. RowTags holds the numbers. The editor and the
// snapshots share the dictionary. A label is only removed once no snapshot that shows it is read
// any more. Thread-safe.
class LabelDictionary {
 public:
  std::uint32_t size() const;
  // Returns the number of `label`. A label without a number gets the next one.
  std::uint32_t Intern(absl::string_view label);
  std::optional<std::uint32_t> Find(absl::string_view label) const;
  // Returns the label with `number`, which Intern or Find must have returned. The view is valid as
  // long as the dictionary has the label.
  absl::string_view NameOf(std::uint32_t number) const;
  // Removes the labels from number `size` on. No snapshot that shows one of them may be read
  // afterwards.
  void Truncate(std::uint32_t size);
  // Returns the bytes of this object and of what it has allocated.
  std::int64_t bytes() const;

 private:
  mutable absl::Mutex mutex_;
  // By number. The keys of numbers_ point into these strings.
  std::deque<std::string> names_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<absl::string_view, std::uint32_t> numbers_ ABSL_GUARDED_BY(mutex_);
  std::int64_t name_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // Heap bytes of the strings in names_.
};

// The ids and labels of a block's rows. A block whose rows have no ids and no labels has no
// RowTags. Rows are numbered from 0 in the block.
class RowTags {
 public:
  // Sets the tags of row `row`. Rows must be added in ascending order. A row that is not added has
  // no tags.
  void Add(std::int64_t row, std::optional<std::uint64_t> id,
           absl::Span<const std::uint32_t> labels);
  // Frees the room that was reserved for further rows.
  void ShrinkToFit();
  // Returns the tags of the rows in `kept`, or null if none of them has tags.
  std::shared_ptr<const RowTags> Only(const RowMask& kept) const;

  std::optional<std::uint64_t> id(std::int64_t row) const {
    if (!has_id_[row]) return std::nullopt;
    return ids_[static_cast<std::size_t>(has_id_.CountFirst(row))];
  }
  // Returns the numbers of the row's labels, in the order in which the labels were given.
  absl::Span<const std::uint32_t> labels(std::int64_t row) const {
    if (row >= static_cast<std::int64_t>(label_ends_.size())) return {};
    const std::size_t begin = row == 0 ? 0 : label_ends_[row - 1];
    return absl::MakeConstSpan(labels_).subspan(begin, label_ends_[row] - begin);
  }
  // Returns the bytes of this object and of what it has allocated.
  std::int64_t bytes() const;

 private:
  static_assert(kernels::kBlockRowsMax * kRowLabelCountMax <=
                std::numeric_limits<std::uint16_t>::max());

  RowMask has_id_;
  std::vector<std::uint64_t> ids_;     // The ids of the rows that have one, in order.
  std::vector<std::uint32_t> labels_;  // The labels of all rows, back to back.
  // By row: the end of the row's labels in labels_. Has rows up to the last one with labels.
  std::vector<std::uint16_t> label_ends_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_ROW_TAGS_H_
