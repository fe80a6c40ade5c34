#include "core/store/row_selection.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace softlookup {
namespace {

absl::Status OutOfRange(const std::string& field, absl::string_view message) {
  return MakeError(reasons::kPositionOutOfRange, absl::StrCat(field, ": ", message),
                   {{"field", field}});
}

// The parts of a RowFilter that look at a row's id and labels.
class TagFilter {
 public:
  TagFilter(const RowFilter& filter, const LabelDictionary* dictionary)
      : ids_(filter.ids.begin(), filter.ids.end()),
        exclude_ids_(filter.exclude_ids.begin(), filter.exclude_ids.end()),
        wants_label_(!filter.any_labels.empty()) {
    // A label that no row has ever had has no number. The sets leave it out, because no row can
    // match it.
    const auto add = [dictionary](const std::vector<std::string>& labels, auto& numbers) {
      for (const std::string& label : labels) {
        const auto number = dictionary == nullptr ? std::nullopt : dictionary->Find(label);
        if (number) numbers.insert(*number);
      }
    };
    add(filter.any_labels, any_labels_);
    add(filter.no_labels, no_labels_);
  }

  bool passes_everything() const {
    return ids_.empty() && exclude_ids_.empty() && !wants_label_ && no_labels_.empty();
  }

  bool Passes(const RowTags& tags, std::int64_t row) const {
    const std::optional<std::uint64_t> id = tags.id(row);
    if (!ids_.empty() && !(id && ids_.contains(*id))) return false;
    if (id && exclude_ids_.contains(*id)) return false;
    const absl::Span<const std::uint32_t> labels = tags.labels(row);
    const auto any_in = [&labels](const auto& numbers) {
      return std::any_of(labels.begin(), labels.end(),
                         [&](std::uint32_t label) { return numbers.contains(label); });
    };
    return (!wants_label_ || any_in(any_labels_)) && !any_in(no_labels_);
  }

 private:
  absl::flat_hash_set<std::uint64_t> ids_;
  absl::flat_hash_set<std::uint64_t> exclude_ids_;
  const bool wants_label_;
  absl::flat_hash_set<std::uint32_t> any_labels_;
  absl::flat_hash_set<std::uint32_t> no_labels_;
};

}  // namespace

absl::StatusOr<RowSelection> RowSelection::Make(const Snapshot& snapshot, const RowFilter& filter,
                                                absl::string_view prefix, PositionRange part) {
  RowSelection selection;
  const std::uint64_t row_count = snapshot.row_count();
  selection.begin_ = filter.begin.value_or(0);
  selection.end_ = filter.end.value_or(row_count);
  if (selection.end_ > row_count) {
    return OutOfRange(absl::StrCat(prefix, "end"),
                      absl::StrCat(selection.end_, " is past the row count of ", row_count));
  }
  if (selection.begin_ > selection.end_) {
    return OutOfRange(absl::StrCat(prefix, "begin"),
                      absl::StrCat(selection.begin_, " is past the end, ", selection.end_));
  }
  if (filter.last && *filter.last < selection.end_ - selection.begin_) {
    selection.begin_ = selection.end_ - *filter.last;
  }
  selection.filtered_ = {.begin = selection.begin_, .end = selection.end_};
  selection.end_ = std::clamp(part.end, selection.begin_, selection.end_);
  selection.begin_ = std::clamp(part.begin, selection.begin_, selection.end_);
  const TagFilter tag_filter(filter, snapshot.labels());
  if (tag_filter.passes_everything() && selection.begin_ == 0 && selection.end_ == row_count) {
    selection.all_ = &snapshot.all_blocks();
    return selection;
  }
  selection.blocks_ = snapshot.BlocksOf(selection.begin_, selection.end_);
  if (tag_filter.passes_everything()) return selection;
  static const RowTags kNoTags;
  for (PositionedBlock& block : selection.blocks_) {
    const RowTags* tags = snapshot.stored_blocks().TagsOf(block.number);
    RowMask& mask = selection.masks_.emplace_back();
    for (std::int64_t row = 0; row < block.view.row_count; ++row) {
      if (!block.MayCount(row)) continue;
      if (tag_filter.Passes(tags == nullptr ? kNoTags : *tags, block.OffsetOf(row))) mask.Set(row);
    }
    block.row_mask = mask.words();
  }
  return selection;
}

}  // namespace softlookup
