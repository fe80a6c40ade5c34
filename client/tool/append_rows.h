#ifndef SOFTLOOKUP_CLIENT_TOOL_APPEND_ROWS_H_
#define SOFTLOOKUP_CLIENT_TOOL_APPEND_ROWS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/tool/append_flags.h"
#include "client/tool/append_report.h"
#include "client/tool/command.h"
#include "client/tool/interrupt.h"
#include "client/tool/pair_reader.h"
#include "client/tool/row_tags.h"

namespace softlookup::tool {

// Appends rows from files to a store, for the commands `append` and `import`.

// Rows to append. The requests of `read` hold either keys and values, or inputs, and no other
// field.
struct RowBatches {
  std::uint64_t row_dim;  // Floats per row, at least 1 once AppendRows() is called.
  // Fills `request` with the next rows, at most `rows_max`. Returns their number, 0 at the end.
  std::function<absl::StatusOr<std::uint32_t>(std::uint32_t rows_max, v1::AppendRequest* request)>
      read;
  // Number of rows of the whole input, if the input tells it.
  std::optional<std::uint64_t> row_count = std::nullopt;
};

// Opens the files of ids and labels. If `rows` tells the number of its rows, fails if a named file
// has not a line for each.
absl::StatusOr<RowTags> OpenTags(const AppendFlags& flags, const RowBatches& rows);

// Returns batches of the keys and values that `reader` reads. `store` gives their dimensions.
RowBatches PairBatches(std::unique_ptr<PairReader> reader, const v1::Store& store);

// Whether a command with --writer sends its rows again after a stream ended with `error`.
bool WriterWaits(const absl::Status& error);

// Streams all rows into `store`, except the first flags.skip_rows. With a writer, skips instead the
// rows that the server has taken from earlier runs with this writer. UsageError if these are rows
// of another input, as far as ResumeCheck tells.
//
// If the server refuses a row, the error gives the number of that row in the input. If the input is
// malformed or a signal comes, the error says how many rows were appended before. It also says how
// to append the rest, unless `resume_flags` is empty or the input has no further row. If no answer
// comes from the server, or it refuses a request after others were acknowledged, the error says how
// to go on, unless `resume_flags` is empty.
//
// `resume_flags` is what that error tells the user to add to a command without a writer, before a
// number of rows to skip: for example "--skip-rows". Pass "" if an error deletes the store.
//
// Returns Cancelled if a signal comes before the input has ended or, with a writer, before the last
// row is acknowledged. Without a writer, AppendRows() first waits for the acknowledgements of the
// rows already sent, so that the error can tell their number.
//
// With the same flags, every run cuts the input into the same requests, wherever it resumes. So a
// request that a killed run left in flight equals a request of the next run. With a writer, the
// server writes such a request once.
absl::StatusOr<AppendReport> AppendRows(const RowBatches& rows, RowTags tags,
                                        const AppendFlags& flags, const v1::Store& store,
                                        Client* client, const Session& session,
                                        const InterruptGuard& interrupt,
                                        std::string_view resume_flags);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_APPEND_ROWS_H_
