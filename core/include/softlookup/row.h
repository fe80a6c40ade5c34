#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ROW_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ROW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace softlookup {

// What happens when a live row already has an appended row's id. The enumerators have the numbers
// of the wire contract.
enum class OnConflict { kUnspecified = 0, kFail = 1, kReplace = 2, kSkip = 3 };

// Which rows take part. A row must pass every part that is set.
struct RowFilter {
  std::optional<std::uint64_t> begin;  // Default 0.
  std::optional<std::uint64_t> end;    // Default: the row count.
  std::optional<std::uint64_t> last;   // Only the newest `last` positions of [begin, end).
  std::vector<std::string> any_labels;
  std::vector<std::string> no_labels;
  std::vector<std::uint64_t> ids;
  std::vector<std::uint64_t> exclude_ids;

  bool empty() const {
    return !begin && !end && !last && any_labels.empty() && no_labels.empty() && ids.empty() &&
           exclude_ids.empty();
  }
};

// One row, with its components as the store keeps them.
struct Row {
  std::uint64_t position = 0;
  std::optional<std::uint64_t> id;
  std::vector<std::string> labels;
  std::vector<float> key;
  std::vector<float> value;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ROW_H_
