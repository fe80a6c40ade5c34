#ifndef SOFTLOOKUP_CLIENT_TOOL_RESUME_CHECK_H_
#define SOFTLOOKUP_CLIENT_TOOL_RESUME_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "softlookup/client.h"

namespace softlookup::tool {

// Tells whether an input can be the one of which a writer has sent the first rows before. A writer
// resumes by the number of these rows alone, so of another input it would leave out as many.
//
// The check is about the last row that the writer appended, as the store has it. That row must be
// the last of the rows sent before. If either has an id, it may be any of them, because
// ON_CONFLICT_SKIP may have left out those behind it. There is nothing to check if the store keeps
// rounded rows, if the row was deleted or cannot be read, or if the input does not have keys.
class ResumeCheck {
 public:
  // Checks nothing.
  ResumeCheck() = default;
  // Reads the last row of `writer` in `store`, within `deadline`.
  ResumeCheck(const v1::Writer& writer, const v1::Store& store, absl::Duration deadline,
              Client* client);

  // Looks at `rows` of the input, whose first one is row `first_row` of it. Call this for all rows
  // that were sent before, in order. Later rows may follow them, and are not looked at.
  void Look(const v1::AppendRequest& rows, std::uint64_t first_row);

  // Call this after Look() at all rows that were sent before. UsageError if the input is another
  // one. It says how to append its rows all the same, by `skip_flags`, such as "--skip-rows".
  absl::Status Check(std::string_view skip_flags) const;

 private:
  // Row-major bytes of FLOAT32, as in a v1::Matrix of the tool.
  struct StoredRow {
    std::string key;
    std::string value;
    bool has_id = false;
  };

  std::string writer_;
  std::string store_;
  std::uint64_t sent_rows_ = 0;   // By the writer, before.
  std::uint64_t position_ = 0;    // Of `row_`.
  std::optional<StoredRow> row_;  // Unset: there is nothing to check.
  bool any_equals_ = false;       // Of the rows of the input that were looked at.
  bool last_equals_ = false;
  bool last_has_id_ = false;
};

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_RESUME_CHECK_H_
