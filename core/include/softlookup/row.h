#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ROW_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ROW_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace softlookup {

// What happens when a live row already has an appended row's id. The enumerators have the numbers
// of proto/softlookup/v1/row.proto.
enum class OnConflict { kUnspecified = 0, kFail = 1, kReplace = 2, kSkip = 3 };

// Which rows take part. A row must pass every part that is set. An empty list counts as not set.
struct RowFilter {
  std::optional<std::uint64_t> begin;      // Default 0.
  std::optional<std::uint64_t> end;        // Default: the row count.
  std::optional<std::uint64_t> last;       // Only the newest `last` positions of [begin, end).
  std::vector<std::string> any_labels;     // Rows with at least one of these labels pass.
  std::vector<std::string> no_labels;      // Rows with any of these labels do not pass.
  std::vector<std::uint64_t> ids;          // Rows with one of these ids pass.
  std::vector<std::uint64_t> exclude_ids;  // Rows with one of these ids do not pass.

  bool empty() const {
    return !begin && !end && !last && any_labels.empty() && no_labels.empty() && ids.empty() &&
           exclude_ids.empty();
  }
};

// The positions [begin, end).
struct PositionRange {
  // The end of a range that has no end, such as the last of the ranges of a store that grows.
  static constexpr std::uint64_t kOpenEnd = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t begin = 0;
  std::uint64_t end = kOpenEnd;

  bool Has(std::uint64_t position) const { return position >= begin && position < end; }

  friend bool operator==(const PositionRange&, const PositionRange&) = default;
};

// One row. Its components are those that the store keeps, after rounding to the storage type.
struct Row {
  std::uint64_t position = 0;
  std::optional<std::uint64_t> id;
  std::vector<std::string> labels;
  std::vector<float> key;
  std::vector<float> value;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ROW_H_
