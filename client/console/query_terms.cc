#include "client/console/query_terms.h"

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/terminal_text.h"
#include "client/console/request_reader.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "softlookup/word_encoder.h"

namespace softlookup::console {
namespace {

using output::Json;

constexpr std::size_t kTermsMax = 16;
constexpr absl::Duration kRowDeadline = absl::Seconds(10);

// Returns the key of the first row that passes `filter`. `row` says which that is, for the error.
absl::StatusOr<std::vector<float>> KeyOf(Client* client, const std::string& store,
                                         const v1::RowFilter& filter, const std::string& row) {
  ReadRowsOptions options{.read_mask = {"position", "key"}, .deadline = kRowDeadline};
  options.page_rows = 1;
  absl::StatusOr<FloatMatrix> key =
      absl::NotFoundError(absl::StrCat("no row of the store has ", row));
  CLIENT_RETURN_IF_ERROR(client->ReadRows(
      store, filter,
      [&](const v1::ReadRowsResponse& page) {
        if (page.rows_size() == 0) return true;
        key = FloatMatrix::FromProto(page.rows(0).key());
        return false;
      },
      options));
  CLIENT_RETURN_IF_ERROR(key.status());
  return std::move(key->data);
}

absl::StatusOr<std::vector<float>> VectorOf(Client* client, const std::string& store,
                                            std::uint32_t dim, const Json& term) {
  RequestReader reader(term);
  const std::string kind = reader.Text("kind");
  v1::RowFilter filter;
  std::vector<float> vector;
  std::string row;
  if (kind == "position") {
    const std::uint64_t position = reader.Count("value", RequestReader::kCountMax - 1).value_or(0);
    filter.set_begin(position);
    filter.set_end(position + 1);
    row = absl::StrCat("the position ", position);
  } else if (kind == "id") {
    std::uint64_t id = 0;
    if (!absl::SimpleAtoi(reader.Text("value"), &id)) reader.Refuse("id", "a whole number");
    filter.add_ids(id);
    row = absl::StrCat("the id ", id);
  } else if (kind == "label") {
    filter.add_any_labels(reader.Text("value"));
    row = absl::StrCat("the label ", cli::Excerpt(filter.any_labels(0)));
  } else if (kind == "word") {
    vector = WordEncoder(dim).Encode(reader.Text("value"));
  } else if (kind == "vector") {
    for (const double number : reader.Numbers("value")) {
      vector.push_back(static_cast<float>(number));
    }
  } else {
    reader.Refuse("kind", "position, id, label, word or vector");
  }
  CLIENT_RETURN_IF_ERROR(reader.status());
  if (!row.empty()) {
    CLIENT_ASSIGN_OR_RETURN(vector, KeyOf(client, store, filter, row));
  }
  if (vector.size() != dim) {
    return absl::InvalidArgumentError(absl::StrCat("the query has ",
                                                   output::Counted(vector.size(), "number"),
                                                   ", but the keys of the store have ", dim));
  }
  return vector;
}

}  // namespace

absl::StatusOr<std::vector<float>> SumOfTerms(Client* client, const std::string& store,
                                              std::uint32_t dim, const Json& terms) {
  if (!terms.is_array() || terms.empty() || terms.size() > kTermsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("terms must be a list of 1 to ", kTermsMax, " terms"));
  }
  if (dim < 1 || dim > 65536) return absl::InvalidArgumentError("dim must be from 1 to 65536");
  std::vector<double> sum(dim);
  for (const Json& term : terms) {
    if (!term.is_object()) return absl::InvalidArgumentError("a term must be an object");
    RequestReader reader(term);
    const double factor = reader.Number("factor").value_or(1);
    CLIENT_RETURN_IF_ERROR(reader.status());
    CLIENT_ASSIGN_OR_RETURN(const std::vector<float> vector, VectorOf(client, store, dim, term));
    for (std::uint32_t i = 0; i < dim; ++i) sum[i] += factor * vector[i];
  }
  return std::vector<float>(sum.begin(), sum.end());
}

}  // namespace softlookup::console
