#include "client/tool/lookup_printer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/terminal_text.h"
#include "client/output/figure_text.h"
#include "client/output/json.h"
#include "client/output/table.h"
#include "client/tool/label_text.h"

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

// Heads per query. `answer.stats` has an entry for each query and head, query-major.
std::size_t HeadsOf(const LookupAnswer& answer) {
  return answer.values.rows == 0 ? 1 : answer.stats.size() / answer.values.rows;
}

// The name of the row at `position`. Empty if `labels` has none.
std::string NameOf(const LookupLabels& labels, std::uint64_t position) {
  const std::vector<std::string>& names = labels.positions.by_position;
  return position < names.size() ? names[position] : "";
}

// The labels of the row at `position`. `labels.rows` must be set.
std::vector<std::string> LabelsOf(const LookupLabels& labels, std::uint64_t position) {
  const auto found = labels.rows->find(position);
  return found == labels.rows->end() ? std::vector<std::string>() : found->second;
}

// The id of the listed row `i`, or nullopt if it has none.
std::optional<std::uint64_t> IdOf(const v1::QueryWeights& weights, int i) {
  if (weights.ids_size() == 0) return std::nullopt;
  if (weights.has_ids_size() > 0 && !weights.has_ids(i)) return std::nullopt;
  return weights.ids(i);
}

// Whether the answer has an entropy and a log-sum-exp: it is soft, and a row counts. In all other
// answers log_sum_exp is -inf.
bool HasEntropy(const v1::QueryStats& stats) { return std::isfinite(stats.log_sum_exp()); }

// Returns 0 for -0, which a score or a weight of 0 may be, and else `number`.
double WithoutSignOfZero(double number) { return number == 0 ? 0 : number; }

Json HeadJson(const LookupAnswer& answer, const LookupLabels& labels, std::size_t index) {
  const v1::QueryStats& stats = answer.stats[index];
  Json head = {{"counted_rows", stats.counted_rows()},
               {"summed_rows", stats.summed_rows()},
               {"empty", stats.empty()},
               {"log_sum_exp", WithoutSignOfZero(stats.log_sum_exp())},
               {"max_logit", WithoutSignOfZero(stats.max_logit())},
               {"entropy", HasEntropy(stats) ? Json(stats.entropy()) : Json()},
               {"error_bound", stats.error_bound()}};
  if (index >= answer.weights.size()) return head;
  const v1::QueryWeights& weights = answer.weights[index];
  Json list = Json::array();
  for (int i = 0; i < weights.positions_size(); ++i) {
    Json row = {{"position", weights.positions(i)}};
    if (const auto id = IdOf(weights, i)) row["id"] = *id;
    std::string name = NameOf(labels, weights.positions(i));
    if (!name.empty()) row["name"] = std::move(name);
    if (labels.rows.has_value()) row["labels"] = LabelsOf(labels, weights.positions(i));
    row["score"] = WithoutSignOfZero(weights.scores(i));
    row["weight"] = WithoutSignOfZero(weights.weights(i));
    list.push_back(std::move(row));
  }
  head["remaining_weight"] = WithoutSignOfZero(weights.remaining_weight());
  head["weights"] = std::move(list);
  return head;
}

// Appends the answers in `answer` to `answers`. They belong to the queries from number
// `first_query` on.
void AddAnswersJson(const LookupAnswer& answer, const LookupLabels& labels,
                    std::uint32_t first_query, Json* answers) {
  const std::size_t heads = HeadsOf(answer);
  for (std::uint32_t query = 0; query < answer.values.rows; ++query) {
    Json one = {{"query", first_query + query}};
    if (!labels.queries.empty()) one["word"] = labels.queries[first_query + query];
    one["values"] = ToJson(answer.values.Row(query));
    Json parts = Json::array();
    for (std::size_t head = 0; head < heads; ++head) {
      parts.push_back(HeadJson(answer, labels, query * heads + head));
    }
    one["heads"] = std::move(parts);
    answers->push_back(std::move(one));
  }
}

// Returns a bar of kBarWidth * |weight| / `scale` characters: "-" if the weight is negative, else
// "#". Empty if the quotient is NaN. PrintWeights() passes the largest |weight| as `scale`, but at
// least 1. Only in mode LINEAR can |weight| be above 1.
std::string Bar(double weight, double scale) {
  const double part = std::abs(weight) / scale;
  if (std::isnan(part)) return "";
  const long length = std::lround(std::min(part, 1.0) * kBarWidth);
  return std::string(static_cast<std::size_t>(length), weight < 0 ? '-' : '#');
}

// Prints a table of the listed rows. Returns the number of its columns that the terminal has no
// room for.
std::size_t PrintWeights(const v1::QueryWeights& weights, const LookupLabels& labels,
                         const Session& session) {
  double scale = 1;
  for (const double weight : weights.weights()) scale = std::max(scale, std::abs(weight));
  const bool named = !labels.positions.by_position.empty();
  std::vector<Table::Column> columns = {{"position", Align::kRight}};
  const bool identified = weights.ids_size() > 0;
  if (identified) columns.push_back({"id", Align::kRight, 1});
  if (named) columns.push_back({"name"});
  if (labels.rows.has_value()) columns.push_back({"labels", Align::kLeft, 1});
  columns.insert(columns.end(),
                 {{"score", Align::kRight, 2}, {"weight", Align::kRight}, {"", Align::kLeft, 3}});
  Table table(std::move(columns));
  for (int i = 0; i < weights.positions_size(); ++i) {
    const std::uint64_t position = weights.positions(i);
    std::vector<std::string> cells = {absl::StrCat(position)};
    if (identified) {
      const auto id = IdOf(weights, i);
      cells.push_back(id.has_value() ? absl::StrCat(*id) : "");
    }
    if (named) cells.push_back(NameOf(labels, position));
    if (labels.rows.has_value()) cells.push_back(LabelsText(LabelsOf(labels, position)));
    cells.push_back(absl::StrFormat("%.6g", WithoutSignOfZero(weights.scores(i))));
    cells.push_back(WeightText(weights.weights(i)));
    cells.push_back(Bar(weights.weights(i), scale));
    table.AddRow(std::move(cells));
  }
  return session.PrintFitted(&table, "  ");
}

// Prints the weights and the statistics of one query and head, at `index` in `answer.stats`.
// Returns the number of hidden columns of the table.
std::size_t PrintHead(const LookupAnswer& answer, const LookupLabels& labels, std::size_t index,
                      const Session& session) {
  std::ostream* const out = session.out;
  const v1::QueryStats& stats = answer.stats[index];
  const bool weighed = index < answer.weights.size();
  std::size_t hidden = 0;
  if (weighed && answer.weights[index].positions_size() > 0) {
    hidden = PrintWeights(answer.weights[index], labels, session);
  }
  if (stats.empty()) {
    *out << "  no row counts, so the answer is 0\n";
    return hidden;
  }
  *out << absl::StreamFormat("  %s counted, %d summed", Counted(stats.counted_rows(), "row"),
                             stats.summed_rows());
  if (HasEntropy(stats)) {
    *out << absl::StreamFormat(", entropy %.4g nats, log-sum-exp %.6g", stats.entropy(),
                               WithoutSignOfZero(stats.log_sum_exp()));
  } else {
    *out << ", entropy and log-sum-exp not defined for this mode";
  }
  *out << absl::StreamFormat(", error bound %.2g", stats.error_bound());
  if (weighed) {
    *out << absl::StreamFormat(", weight of the others %.4g",
                               WithoutSignOfZero(answer.weights[index].remaining_weight()));
  }
  *out << "\n";
  return hidden;
}

// Prints the answers. Returns the largest number of columns that are hidden in one of the tables.
std::size_t PrintAnswers(const LookupAnswer& answer, const LookupLabels& labels,
                         std::uint32_t first_query, const Session& session) {
  std::ostream* const out = session.out;
  std::size_t hidden_max = 0;
  const std::size_t heads = HeadsOf(answer);
  for (std::uint32_t query = 0; query < answer.values.rows; ++query) {
    for (std::size_t head = 0; head < heads; ++head) {
      *out << "query " << first_query + query;
      if (!labels.queries.empty()) {
        *out << ", " << TerminalText(labels.queries[first_query + query]);
      }
      if (heads > 1) *out << ", head " << head;
      *out << "\n";
      hidden_max = std::max(hidden_max, PrintHead(answer, labels, query * heads + head, session));
    }
    const auto values = answer.values.Row(query);
    *out << "  answer " << VectorText(std::vector<double>(values.begin(), values.end())) << "\n";
  }
  return hidden_max;
}

}  // namespace

std::string WeightText(double weight) {
  const double size = std::abs(weight);
  if (size != 0 && size < 0.001) return absl::StrFormat("%.1e", weight);
  if (size == 0) return "0.0000";
  return size < 1e6 ? absl::StrFormat("%.4f", weight) : absl::StrFormat("%.4g", weight);
}

void LookupPrinter::Add(const LookupAnswer& answer) {
  if (query_count_ == 0) {
    revision_ = answer.revision;
    row_count_ = answer.row_count;
    if (!session_.json) {
      *session_.out << absl::StreamFormat("%s at revision %d, %s\n", TerminalText(labels_.store),
                                          revision_, Counted(row_count_, "row"));
    }
  }
  if (session_.json) {
    AddAnswersJson(answer, labels_, query_count_, &answers_);
  } else {
    hidden_max_ = std::max(hidden_max_, PrintAnswers(answer, labels_, query_count_, session_));
  }
  query_count_ += answer.values.rows;
  revision_max_ = std::max(revision_max_, answer.revision);
}

void LookupPrinter::Finish() {
  if (session_.json) {
    PrintJson({{"store", labels_.store},
               {"revision", revision_},
               {"row_count", row_count_},
               {"answers", std::move(answers_)}},
              session_.out);
  }
  session_.NoteHidden(hidden_max_);
  if (revision_max_ != revision_) {
    *session_.err << absl::StreamFormat(
        "softlookup: the store changed meanwhile: some queries are answered at later revisions, up "
        "to %d\n",
        revision_max_);
  }
}

void PrintAttention(const LookupAnswer& answer, const Session& session) {
  if (!session.json) {
    return session.NoteHidden(PrintAnswers(answer, {}, /*first_query=*/0, session));
  }
  Json answers = Json::array();
  AddAnswersJson(answer, {}, /*first_query=*/0, &answers);
  PrintJson({{"answers", std::move(answers)}}, session.out);
}

}  // namespace softlookup::tool
