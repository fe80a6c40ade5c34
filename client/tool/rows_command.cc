// `rows`, `export` and `delete-rows`: the commands about the rows that a filter keeps.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/terminal_text.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "client/output/json.h"
#include "client/output/progress_line.h"
#include "client/tool/command.h"
#include "client/tool/exit_code.h"
#include "client/tool/filter_flags.h"
#include "client/tool/interrupt.h"
#include "client/tool/npy_writer.h"
#include "client/tool/row_printer.h"
#include "client/tool/row_tags.h"
#include "client/tool/validators.h"
#include "client/tool/whole_store.h"
#include "softlookup/canceller.h"

namespace softlookup::tool {
namespace {

using cli::TerminalText;
using output::Counted;
using output::PrintJson;

struct RowsFlags {
  std::string store;
  FilterFlags filter;
  std::vector<std::string> fields;
  std::uint32_t limit = 100;
};

struct ExportFlags {
  std::string store;
  FilterFlags filter;
  // Paths; an empty one for ids or labels means none. "-" is refused.
  std::string keys;
  std::string values;
  std::string ids;
  std::string labels;
};

struct DeleteFlags {
  std::string store;
  FilterFlags filter;
};

absl::Status Rows(const RowsFlags& flags, const Session& session) {
  RowListing listing{.store = flags.store,
                     .fields = {},
                     .all_fields = flags.fields.empty(),
                     .revision = 0,
                     .rows = {},
                     .more = false};
  for (const std::string& field : RowFieldNames()) {
    const bool asked =
        std::find(flags.fields.begin(), flags.fields.end(), field) != flags.fields.end();
    if (asked || flags.fields.empty()) listing.fields.push_back(field);
  }
  ReadRowsOptions options;
  options.deadline = session.StreamDeadline();
  options.read_mask = listing.fields;
  options.page_rows = flags.limit;
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_RETURN_IF_ERROR(client.ReadRows(
      flags.store, flags.filter.ToProto(),
      [&](const v1::ReadRowsResponse& page) {
        listing.revision = page.revision();
        for (const v1::Row& row : page.rows()) {
          listing.more = listing.rows.size() == flags.limit;
          if (listing.more) return false;
          listing.rows.push_back(row);
        }
        return true;
      },
      options));
  if (listing.rows.empty()) *session.err << flags.filter.NoRowNote(flags.store);
  return PrintRows(listing, session);
}

// Appends a row's key or value to `file`. Internal error unless it has `dim` components.
absl::Status Write(const v1::Matrix& matrix, std::uint32_t dim, NpyWriter* file) {
  CLIENT_ASSIGN_OR_RETURN(const FloatMatrix vector, FloatMatrix::FromProto(matrix));
  if (vector.data.size() != dim) {
    return absl::InternalError("the server sent a row that does not fit the store");
  }
  return file->Write(vector.data);
}

absl::Status CheckFiles(const ExportFlags& flags) {
  std::set<std::string> files;
  for (const std::string& file : {flags.keys, flags.values, flags.ids, flags.labels}) {
    if (file == "-") return UsageError("export writes to files, not to standard output");
    if (!file.empty() && !files.insert(file).second) {
      return UsageError(absl::StrCat("two of the options name the same file, ", file));
    }
  }
  return absl::OkStatus();
}

absl::Status Export(const ExportFlags& flags, const Session& session) {
  CLIENT_RETURN_IF_ERROR(CheckFiles(flags));
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const v1::Store store, GetWholeStore(flags.store, &client));
  CLIENT_ASSIGN_OR_RETURN(NpyWriter keys, NpyWriter::Create(flags.keys, store.key_dim()));
  CLIENT_ASSIGN_OR_RETURN(NpyWriter values, NpyWriter::Create(flags.values, store.value_dim()));
  CLIENT_ASSIGN_OR_RETURN(RowTagsWriter tags, RowTagsWriter::Create(flags.ids, flags.labels));
  ReadRowsOptions options;
  options.deadline = session.StreamDeadline();
  options.read_mask = {"key", "value"};
  if (!flags.ids.empty()) options.read_mask.push_back("id");
  if (!flags.labels.empty()) options.read_mask.push_back("labels");
  // A signal ends the command before the files are in their places.
  const InterruptGuard interrupt;
  Canceller canceller;
  options.canceller = &canceller;
  std::optional<InterruptAction> cut(std::in_place, [&canceller] { canceller.Cancel(); });
  std::uint64_t row_count = 0;
  std::uint64_t revision = 0;
  absl::Status written;
  // With a filter, the number of rows is not known before they are read.
  output::WorkProgress progress(
      "row", flags.filter.any() ? std::nullopt : std::optional(store.live_row_count()));
  const absl::Status read = client.ReadRows(
      flags.store, flags.filter.ToProto(),
      [&](const v1::ReadRowsResponse& page) {
        revision = page.revision();
        for (const v1::Row& row : page.rows()) {
          written.Update(Write(row.key(), store.key_dim(), &keys));
          written.Update(Write(row.value(), store.value_dim(), &values));
          written.Update(tags.Write(row));
          if (!written.ok()) return false;
          ++row_count;
        }
        progress.Update(row_count);
        return true;
      },
      options);
  cut.reset();
  progress.Clear();
  if (interrupt.interrupted()) {
    return absl::CancelledError("interrupted; no file is written, and none is changed");
  }
  CLIENT_RETURN_IF_ERROR(AfterAnAnswer(read));
  CLIENT_RETURN_IF_ERROR(written);
  CLIENT_RETURN_IF_ERROR(tags.Finish());
  CLIENT_RETURN_IF_ERROR(keys.Finish());
  CLIENT_RETURN_IF_ERROR(values.Finish());
  CLIENT_RETURN_IF_ERROR(keys.Publish());
  CLIENT_RETURN_IF_ERROR(values.Publish());
  CLIENT_RETURN_IF_ERROR(tags.Publish());
  if (row_count == 0) *session.err << flags.filter.NoRowNote(flags.store);
  if (session.json) {
    PrintJson({{"store", flags.store}, {"rows", row_count}, {"revision", revision}}, session.out);
  } else {
    *session.out << absl::StreamFormat("exported %s of %s at revision %d\n",
                                       Counted(row_count, "row"), TerminalText(flags.store),
                                       revision);
  }
  return absl::OkStatus();
}

absl::Status DeleteRows(const DeleteFlags& flags, const Session& session) {
  const v1::RowFilter filter = flags.filter.ToProto();
  if (filter.ByteSizeLong() == 0) {
    return UsageError("delete-rows needs to be told which rows; --begin 0 deletes all");
  }
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const v1::DeleteRowsResponse deleted,
                          client.DeleteRows(flags.store, filter));
  if (deleted.deleted_count() == 0) *session.err << flags.filter.NoRowNote(flags.store);
  if (session.json) {
    PrintJson({{"store", flags.store},
               {"deleted_rows", deleted.deleted_count()},
               {"revision", deleted.revision()}},
              session.out);
  } else {
    *session.out << absl::StreamFormat("deleted %s of %s, now at revision %d\n",
                                       Counted(deleted.deleted_count(), "row"),
                                       TerminalText(flags.store), deleted.revision());
  }
  return absl::OkStatus();
}

}  // namespace

void AddRowsCommands(CLI::App* app, Session* session) {
  auto rows_flags = std::make_shared<RowsFlags>();
  CLI::App* rows = app->add_subcommand("rows", "Show the rows of a store");
  rows->add_option("STORE", rows_flags->store, "Name of the store")->required();
  AddFilterFlags(rows, &rows_flags->filter);
  rows->add_option("--fields", rows_flags->fields,
                   "Fields of each row to show (default: all that fit)")
      ->type_name("FIELD,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(RowFieldNames()));
  rows->add_option("--limit", rows_flags->limit, "Most rows to show")
      ->check(Positive())
      ->capture_default_str();
  rows->callback([=] { session->run = [=] { return Rows(*rows_flags, *session); }; });

  auto export_flags = std::make_shared<ExportFlags>();
  CLI::App* exporter = app->add_subcommand("export", "Write the rows of a store to files");
  exporter->footer(
      "Writes the rows of one snapshot, in position order, with exactly the bits that the store\n"
      "keeps. `import` and `append` read these files. Older files of these names stay as they are\n"
      "until every row is written; a command that fails or is interrupted leaves them.");
  exporter->add_option("STORE", export_flags->store, "Name of the store")->required();
  exporter->add_option("--keys", export_flags->keys, "File to write keys to, one per row")
      ->type_name("FILE.npy")
      ->check(NameEndsIn(".npy"))
      ->required();
  exporter->add_option("--values", export_flags->values, "File to write values to, one per row")
      ->type_name("FILE.npy")
      ->check(NameEndsIn(".npy"))
      ->required();
  exporter
      ->add_option(
          "--ids", export_flags->ids,
          "File to write ids to, one line per row, - for a row without an id (default: not "
          "written)")
      ->type_name("FILE");
  exporter
      ->add_option("--labels", export_flags->labels,
                   "File to write labels to, one line per row (default: not written)")
      ->type_name("FILE");
  AddFilterFlags(exporter, &export_flags->filter);
  exporter->callback([=] { session->run = [=] { return Export(*export_flags, *session); }; });

  auto delete_flags = std::make_shared<DeleteFlags>();
  CLI::App* remove = app->add_subcommand(
      "delete-rows",
      "Delete the rows of a store that the options choose; at least one option is needed");
  remove->add_option("STORE", delete_flags->store, "Name of the store")->required();
  AddFilterFlags(remove, &delete_flags->filter);
  remove->callback([=] { session->run = [=] { return DeleteRows(*delete_flags, *session); }; });
}

}  // namespace softlookup::tool
