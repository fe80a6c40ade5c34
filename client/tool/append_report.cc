#include "client/tool/append_report.h"

#include "absl/strings/str_format.h"
#include "client/cli/terminal_text.h"
#include "client/output/figure_text.h"
#include "client/output/json.h"

namespace softlookup::tool {

using cli::TerminalText;
using output::Counted;
using output::Json;
using output::PrintJson;

std::optional<std::uint64_t> ReplacedRows(const v1::Store& before, const v1::Store& after,
                                          const AppendSummary& summary) {
  // Every change of a store is a revision, and so is every request of the append.
  if (after.revision() != before.revision() + summary.acknowledged_requests) return std::nullopt;
  return before.live_row_count() + summary.acknowledged_rows - after.live_row_count();
}

void PrintAppend(const AppendReport& report, const AppendFlags& flags, const v1::Store& store,
                 const Session& session) {
  const AppendSummary& summary = report.summary;
  const double seconds = absl::ToDoubleSeconds(report.elapsed);
  const double rows_per_second = static_cast<double>(summary.acknowledged_rows) / seconds;
  // If nothing was appended, the summary has no row count and no revision. Those of `store` then
  // still hold.
  const bool wrote = summary.acknowledged_requests > 0;
  const std::uint64_t row_count = wrote ? summary.row_count : store.row_count();
  const std::uint64_t revision = wrote ? summary.revision : store.revision();
  if (!wrote && report.skipped_rows > 0 && !flags.writer.empty()) {
    *session.err << absl::StreamFormat(
        "softlookup: all %s had been sent before as %s: if this is another input, give it another "
        "--writer\n",
        Counted(report.skipped_rows, "row"), TerminalText(flags.writer));
  }
  if (report.left_out_rows.value_or(0) > 0) {
    *session.err << "softlookup: " << Counted(*report.left_out_rows, "row")
                 << " left out: earlier rows have their ids\n";
  } else if (!report.left_out_rows.has_value() && report.repeated_ids.value_or(0) > 0) {
    *session.err << "softlookup: " << Counted(*report.repeated_ids, "row")
                 << " replaced earlier rows of the input, which had their ids\n";
  }
  if (session.json) {
    Json json = {{"store", store.name()}};
    if (report.created.has_value()) json["created"] = *report.created;
    if (!flags.writer.empty() || flags.skip_rows > 0) json["skipped_rows"] = report.skipped_rows;
    if (!flags.writer.empty()) {
      json["reconnections"] = summary.reconnections;
    }
    if (report.repeated_ids.has_value()) json["repeated_ids"] = *report.repeated_ids;
    if (report.left_out_rows.has_value()) json["left_out_rows"] = *report.left_out_rows;
    if (report.replaced_rows.has_value()) json["replaced_rows"] = *report.replaced_rows;
    json.update({{"rows", summary.acknowledged_rows},
                 {"seconds", seconds},
                 {"rows_per_second", rows_per_second},
                 {"row_count", row_count},
                 {"revision", revision}});
    return PrintJson(json, session.out);
  }
  if (report.created.value_or(false)) {
    *session.out << absl::StreamFormat("created %s with key_dim %d and value_dim %d\n",
                                       TerminalText(store.name()), store.key_dim(),
                                       store.value_dim());
  }
  if (report.skipped_rows > 0 && flags.writer.empty()) {
    *session.out << absl::StreamFormat("skipped %s\n", Counted(report.skipped_rows, "row"));
  } else if (report.skipped_rows > 0) {
    *session.out << absl::StreamFormat("skipped %s, which %s had sent before\n",
                                       Counted(report.skipped_rows, "row"),
                                       TerminalText(flags.writer));
  }
  *session.out << absl::StreamFormat(
      "appended %s in %.3f s, %.0f rows/s; %s has %s at revision %d\n",
      Counted(summary.acknowledged_rows, "row"), seconds, rows_per_second,
      TerminalText(store.name()), Counted(row_count, "row"), revision);
  if (report.replaced_rows.has_value()) {
    *session.out << absl::StreamFormat("replaced %s\n", Counted(*report.replaced_rows, "row"));
  }
}

}  // namespace softlookup::tool
