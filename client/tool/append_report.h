#ifndef SOFTLOOKUP_CLIENT_TOOL_APPEND_REPORT_H_
#define SOFTLOOKUP_CLIENT_TOOL_APPEND_REPORT_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "client/tool/append_flags.h"
#include "client/tool/command.h"
#include "softlookup/append_stream.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup::tool {

// What AppendRows() (append_rows.h) did.
struct AppendReport {
  AppendSummary summary;
  std::uint64_t skipped_rows = 0;  // Rows at the input's start that were not sent.
  absl::Duration elapsed;
  std::optional<bool> created;  // Set by import: whether it created the store.
  // Rows sent whose id an earlier row of the input has, too. Set if --on-conflict is replace or
  // skip. Otherwise the server refuses such rows.
  std::optional<std::uint64_t> repeated_ids;
  // Rows sent that the server left out because earlier rows have their ids. Set if --on-conflict is
  // skip.
  std::optional<std::uint64_t> left_out_rows;
  // Earlier rows that were replaced, those of the input included. Set if --on-conflict is replace
  // and nobody else changed the store meanwhile.
  std::optional<std::uint64_t> replaced_rows;
};

// Returns AppendReport::replaced_rows. `before` and `after` are the store before and after the
// append that `summary` is of.
std::optional<std::uint64_t> ReplacedRows(const v1::Store& before, const v1::Store& after,
                                          const AppendSummary& summary);

// Prints a few lines, or with -o json {"store", "created"?, "skipped_rows"?, "reconnections"?,
// "repeated_ids"?, "left_out_rows"?, "replaced_rows"?, "rows", "seconds", "rows_per_second",
// "row_count", "revision"}. "created", "repeated_ids", "left_out_rows" and "replaced_rows" are
// there if `report` has them, "reconnections" with a writer, "skipped_rows" with a writer or with
// --skip-rows above 0. Says on session.err how many rows were left out, and how many replaced
// others of the input. If all rows of the input had been sent before, says so on session.err: the
// writer's name may be that of another input. `store` is the store as it was before the append.
void PrintAppend(const AppendReport& report, const AppendFlags& flags, const v1::Store& store,
                 const Session& session);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_APPEND_REPORT_H_
