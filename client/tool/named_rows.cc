#include "client/tool/named_rows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "client/cli/nearest_name.h"
#include "client/cli/terminal_text.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "client/tool/exit_code.h"

namespace softlookup::tool {
namespace {

using cli::Suggestion;
using cli::TerminalText;
using output::Counted;

// Reads the positions and keys of the first two rows that pass `filter`, or of fewer if fewer pass.
// A second row shows that a label is not unique.
absl::StatusOr<std::vector<v1::Row>> ReadTwoRows(const v1::Store& store,
                                                 const v1::RowFilter& filter,
                                                 const Session& session, Client* client) {
  std::vector<v1::Row> rows;
  ReadRowsOptions options;
  options.read_mask = {"position", "key"};
  options.page_rows = 2;
  options.deadline = session.StreamDeadline();
  CLIENT_RETURN_IF_ERROR(client->ReadRows(
      store.name(), filter,
      [&rows](const v1::ReadRowsResponse& page) {
        rows.insert(rows.end(), page.rows().begin(), page.rows().end());
        return rows.size() < 2;
      },
      options));
  return rows;
}

absl::StatusOr<v1::RowFilter> PositionNamed(const std::string& name, const PositionNames& names,
                                            const v1::Store& store) {
  const std::string& file = names.file;
  const std::vector<std::string>& positions = names.by_position;
  // Names of rows that are not there: where rows were deleted and the store rebuilt, all others may
  // have other positions, too.
  if (positions.size() > store.row_count()) {
    return InputError(
        file, absl::StrCat("names ", Counted(positions.size(), "row"), ", but ",
                           TerminalText(store.name()), " has ", store.row_count(),
                           ": it is of other rows; without --names, a name is a row's label"));
  }
  const auto found = std::find(positions.begin(), positions.end(), name);
  if (found == positions.end()) {
    return InputError(file, absl::StrCat("has no name ", TerminalText(name),
                                         TerminalText(Suggestion(name, positions))));
  }
  const auto position = static_cast<std::uint64_t>(found - positions.begin());
  const auto again = std::find(found + 1, positions.end(), name);
  if (again != positions.end()) {
    return InputError(file, absl::StrCat("gives the name ", TerminalText(name), " to positions ",
                                         position, " and ", again - positions.begin()));
  }
  v1::RowFilter filter;
  filter.set_begin(position);
  filter.set_end(position + 1);
  return filter;
}

}  // namespace

absl::StatusOr<FloatMatrix> KeysOfNames(const v1::Store& store,
                                        const std::vector<std::string>& names,
                                        const PositionNames& positions, const Session& session,
                                        Client* client) {
  FloatMatrix keys{.rows = 0, .cols = store.key_dim(), .data = {}};
  for (const std::string& name : names) {
    v1::RowFilter filter;
    if (positions.file.empty()) {
      filter.add_any_labels(name);
    } else {
      CLIENT_ASSIGN_OR_RETURN(filter, PositionNamed(name, positions, store));
    }
    CLIENT_ASSIGN_OR_RETURN(const std::vector<v1::Row> rows,
                            ReadTwoRows(store, filter, session, client));
    const std::string shown = TerminalText(name);
    const std::string shown_store = TerminalText(store.name());
    if (rows.empty() && !positions.file.empty()) {
      return InputError(positions.file,
                        absl::StrCat("names position ", filter.begin(), " ", shown, ", but ",
                                     shown_store, " has no such row: it was deleted"));
    }
    if (rows.empty()) {
      return absl::NotFoundError(
          absl::StrCat("no row of ", shown_store, " has the label ", shown,
                       name.find(',') == std::string::npos
                           ? ""
                           : " (in a file of --labels a comma ends a label, unless it is quoted)",
                       "; --names FILE names rows by their positions"));
    }
    if (rows.size() > 1) {
      return UsageError(absl::StrCat("--name ", shown, ": the rows at positions ",
                                     rows[0].position(), " and ", rows[1].position(), " of ",
                                     shown_store,
                                     " have that label, but a name stands for one row"));
    }
    CLIENT_ASSIGN_OR_RETURN(const FloatMatrix key, FloatMatrix::FromProto(rows[0].key()));
    if (key.data.size() != store.key_dim()) {
      return absl::InternalError("the server sent a row that does not fit the store");
    }
    keys.data.insert(keys.data.end(), key.data.begin(), key.data.end());
    ++keys.rows;
  }
  return keys;
}

void WarnOfOtherRows(const PositionNames& names, const v1::Store& store, const Session& session) {
  const std::uint64_t rows = store.row_count();
  const std::uint64_t named = names.by_position.size();
  if (names.file.empty() || (named <= rows && rows <= names.lines)) return;
  *session.err << absl::StrCat("softlookup: ", TerminalText(names.file), " names ",
                               Counted(rows < named ? named : names.lines, "row"), ", but ",
                               TerminalText(store.name()), " has ", rows,
                               rows < named ? ": it is of other rows, so names may be wrong\n"
                                            : ": the rows after those have no name\n");
}

}  // namespace softlookup::tool
