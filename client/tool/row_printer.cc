#include "client/tool/row_printer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/terminal_text.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "client/output/json.h"
#include "client/output/table.h"
#include "client/tool/label_text.h"
#include "softlookup/float_matrix.h"

namespace softlookup::tool {
namespace {

using cli::TerminalText;
using output::Align;
using output::Counted;
using output::Json;
using output::PrintJson;
using output::Table;
using output::ToJson;
using output::VectorText;

absl::StatusOr<Json> RowJson(const v1::Row& row, const std::vector<std::string>& fields) {
  Json json = Json::object();
  for (const std::string& field : fields) {
    if (field == "position") {
      json[field] = row.position();
    } else if (field == "id") {
      if (row.has_id()) json[field] = row.id();
    } else if (field == "labels") {
      json[field] = std::vector<std::string>(row.labels().begin(), row.labels().end());
    } else {
      CLIENT_ASSIGN_OR_RETURN(const FloatMatrix vector,
                              FloatMatrix::FromProto(field == "key" ? row.key() : row.value()));
      json[field] = ToJson(vector.data);
    }
  }
  return json;
}

absl::StatusOr<std::string> Cell(const v1::Row& row, const std::string& field) {
  if (field == "position") return absl::StrCat(row.position());
  if (field == "id") return row.has_id() ? absl::StrCat(row.id()) : std::string();
  if (field == "labels") return LabelsText({row.labels().begin(), row.labels().end()});
  CLIENT_ASSIGN_OR_RETURN(const std::vector<double> vector,
                          DoublesFromProto(field == "key" ? row.key() : row.value()));
  return VectorText(vector);
}

// Returns Table::Column::rank of a field. Keys are hidden first, then values, because both are wide
// and keys tell a reader least.
int RankOf(const std::string& field) {
  if (field == "key") return 3;
  if (field == "value") return 2;
  return field == "labels" ? 1 : 0;
}

}  // namespace

const std::vector<std::string>& RowFieldNames() {
  static const auto* const names =
      new std::vector<std::string>{"position", "id", "labels", "key", "value"};
  return *names;
}

absl::Status PrintRows(const RowListing& listing, const Session& session) {
  if (session.json) {
    Json rows = Json::array();
    for (const v1::Row& row : listing.rows) {
      CLIENT_ASSIGN_OR_RETURN(Json json, RowJson(row, listing.fields));
      rows.push_back(std::move(json));
    }
    PrintJson({{"store", listing.store},
               {"revision", listing.revision},
               {"rows", std::move(rows)},
               {"more", listing.more}},
              session.out);
    return absl::OkStatus();
  }
  std::vector<Table::Column> columns;
  for (const std::string& field : listing.fields) {
    const bool number = field == "position" || field == "id";
    columns.push_back(
        {field, number ? Align::kRight : Align::kLeft, listing.all_fields ? RankOf(field) : 0});
  }
  Table table(std::move(columns));
  for (const v1::Row& row : listing.rows) {
    std::vector<std::string> cells;
    for (const std::string& field : listing.fields) {
      CLIENT_ASSIGN_OR_RETURN(cells.emplace_back(), Cell(row, field));
    }
    table.AddRow(std::move(cells));
  }
  session.Print(&table);
  *session.out << absl::StreamFormat("%s of %s at revision %d%s\n",
                                     Counted(listing.rows.size(), "row"),
                                     TerminalText(listing.store), listing.revision,
                                     listing.more ? "; more follow, see --limit" : "");
  return absl::OkStatus();
}

}  // namespace softlookup::tool
