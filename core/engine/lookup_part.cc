#include "core/engine/lookup_part.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/attention/answer_writer.h"
#include "core/attention/head_queries.h"
#include "core/attention/row_values.h"
#include "core/base/check.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace softlookup {
namespace {

// Returns the ids of those of the positions that have one. Sorts the positions.
std::vector<PositionedId> IdsOf(const LookupTask& task, std::vector<std::uint64_t> positions) {
  std::ranges::sort(positions);
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  std::vector<PositionedId> ids;
  for (const std::uint64_t position : positions) {
    // A running memory is listed like a row, but has no id. Its position is outside of the rows.
    if (position < task.attention().begin || position >= task.attention().end) continue;
    if (const std::optional<std::uint64_t> id = task.snapshot()->IdAt(position)) {
      ids.push_back({.position = position, .id = *id});
    }
  }
  return ids;
}

std::vector<std::uint64_t> PositionsIn(const std::vector<PartialAnswer>& answers) {
  std::vector<std::uint64_t> positions;
  for (const PartialAnswer& answer : answers) {
    for (const CountedRow& row : answer.rows.best) positions.push_back(row.position);
    for (const CountedRow& row : answer.rows.first) positions.push_back(row.position);
  }
  return positions;
}

}  // namespace

PartialLookup PartialLookupOf(const LookupTask& task, const PositionRange& range,
                              AttentionAnswer answer) {
  const AttentionTask& attention = task.attention();
  SOFTLOOKUP_CHECK(attention.whole.has_value()) << "the task is no part of a larger one";
  PartialLookup partial{.shape = ShapeOf(attention),
                        .attended = {.begin = attention.whole->begin, .end = attention.whole->end},
                        .revision = task.snapshot()->revision(),
                        .row_count = task.snapshot()->row_count(),
                        .range = range,
                        .answers = std::move(answer.partials)};
  if (partial.shape.lists_rows() && !partial.shape.selects_rows()) {
    partial.ids = IdsOf(task, PositionsIn(partial.answers));
  }
  return partial;
}

absl::StatusOr<RowSums> SumRows(const LookupTask& task, const RowSumsRequest& request,
                                const CancelToken& cancel) {
  const AttentionTask& attention = task.attention();
  const auto head_queries = static_cast<std::size_t>(task.query_count() * attention.num_heads);
  if (!request.rows.empty() && request.rows.size() != head_queries) {
    return MakeError(reasons::kShapeMismatch,
                     absl::StrCat("rows: ", request.rows.size(), " lists of rows for ",
                                  head_queries, " queries in all heads"),
                     {{"field", "rows"}});
  }
  // The sums take as many bytes as those of the first phase, which has the same limit.
  const AnswerWriter writer(ShapeOf(attention), attention.answer_bytes_max);
  SOFTLOOKUP_RETURN_IF_ERROR(writer.CheckSize());
  const RowValues values(attention);
  const auto continues = [&cancel] { return cancel.Check().ok(); };
  RowSums found;
  for (std::size_t q = 0; q < request.rows.size(); ++q) {
    for (const WeighedRow& row : request.rows[q]) {
      if (values.Has(row.position) && std::isfinite(row.weight)) continue;
      return MakeError(reasons::kPositionOutOfRange,
                       absl::StrCat("rows: position ", row.position, " with the weight ",
                                    row.weight, " is no row of the lookup in this range"),
                       {{"field", "rows"}});
    }
    const std::int64_t head = static_cast<std::int64_t>(q) % attention.num_heads;
    const std::vector<double> sum = values.SumOf(head, request.rows[q], continues);
    found.sums.insert(found.sums.end(), sum.begin(), sum.end());
    SOFTLOOKUP_RETURN_IF_ERROR(cancel.Check());
  }
  found.ids = IdsOf(task, request.id_positions);
  return found;
}

}  // namespace softlookup
