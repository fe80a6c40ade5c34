#ifndef SOFTLOOKUP_CLIENT_TOOL_APPEND_ROWS_H_
#define SOFTLOOKUP_CLIENT_TOOL_APPEND_ROWS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/tool/command.h"
#include "client/tool/pair_reader.h"
#include "client/tool/row_tags.h"

namespace softlookup::tool {

// What `append` and `import` share: how rows get from files into a store.

struct AppendFlags {
  std::string ids;     // FILE.
  std::string labels;  // FILE.
  std::string on_conflict;
  std::uint32_t batch_rows = 4096;
  std::string acknowledge;
  std::string writer;  // Empty: rows are sent once, and again if the command is.
};

// `flags` must outlive `command`.
void AddAppendFlags(CLI::App* command, AppendFlags* flags);

// Rows to append, in requests that have keys and values, or inputs, and nothing else.
struct RowBatches {
  std::uint64_t row_dim;  // Numbers of a row.
  // Fills a request with the next rows, at most so many; returns how many, 0 at the end.
  std::function<absl::StatusOr<std::uint32_t>(std::uint32_t rows_max, v1::AppendRequest* request)>
      read;
};

// What `reader` reads for `store`.
RowBatches PairBatches(std::unique_ptr<PairReader> reader, const v1::Store& store);

struct AppendReport {
  AppendSummary summary;
  std::uint64_t skipped_rows = 0;  // Of the input: the writer had sent them before.
  absl::Duration elapsed;
  std::optional<bool> created;  // Of import: whether the store was.
};

// Streams all rows into `store`, but those that the writer, if there is one, sent in an earlier
// run: as many of the first as its last sequence says. An error says which row it is about, or how
// many were appended before it.
//
// Requests end at the same rows of the input in every run with the same flags, wherever it starts:
// a request that a killed run left on its way then is one of the next run's, too, and written once.
absl::StatusOr<AppendReport> AppendRows(const RowBatches& rows, RowTags tags,
                                        const AppendFlags& flags, const v1::Store& store,
                                        Client* client, const Session& session);

// {"store", "created"?, "skipped_rows"?, "reconnections"?, "rows", "seconds", "rows_per_second",
// "row_count", "revision"}, two of them with a writer. `store` is as it was before.
void PrintAppend(const AppendReport& report, const AppendFlags& flags, const v1::Store& store,
                 const Session& session);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_APPEND_ROWS_H_
