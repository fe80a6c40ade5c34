#include "core/engine/attend_job.h"

#include <utility>

#include "core/base/status_macros.h"
#include "core/engine/project.h"
#include "core/engine/validate.h"
#include "core/kernels/panel_rows.h"
#include "core/store/growing_blocks.h"

namespace softlookup {
namespace {

// Arranges the rows in blocks as a store of this `config` does. The blocks have no memories.
StoredBlocks ArrangeRows(const StoreConfig& config, const MatrixView& keys,
                         const MatrixView& values) {
  GrowingBlocks blocks(config);
  kernels::PanelRowReader reader(blocks.shape());
  for (std::int64_t row = 0; row < keys.rows; ++row) {
    blocks.Append({.key = keys.row(row), .value = values.row(row)}, config, reader);
  }
  return blocks.View();
}

}  // namespace

absl::Status AttendJob::MakeOfInputs(std::vector<float> Projection::*weights,
                                     std::vector<float>& projected, MatrixView& matrix) const {
  matrix = *request_.inputs;
  if (request_.projection == nullptr) return absl::OkStatus();
  const std::vector<float>& map = (*request_.projection).*weights;
  const std::int64_t dim = static_cast<std::int64_t>(map.size()) / request_.projection->input_dim;
  SOFTLOOKUP_ASSIGN_OR_RETURN(projected, Project("inputs", map, dim, *request_.inputs, *cancel_));
  matrix = {.data = projected.data(), .rows = request_.inputs->rows, .cols = dim};
  return absl::OkStatus();
}

absl::Status AttendJob::Prepare() {
  MatrixView queries = request_.queries, keys = request_.keys, values = request_.values;
  std::vector<float> projected_keys, projected_values;
  if (request_.inputs) {
    SOFTLOOKUP_RETURN_IF_ERROR(MakeOfInputs(&Projection::key, projected_keys, keys));
    SOFTLOOKUP_RETURN_IF_ERROR(MakeOfInputs(&Projection::value, projected_values, values));
    if (request_.self) {
      SOFTLOOKUP_RETURN_IF_ERROR(MakeOfInputs(&Projection::query, projected_queries_, queries));
    }
  }
  const Limits& limits = context_.limits;
  SOFTLOOKUP_ASSIGN_OR_RETURN(const ResolvedOptions options,
                              ResolveOptions(request_.options, Score::kScaledDot, 1, limits));
  const StoreConfig config{
      .key_dim = keys.cols, .value_dim = values.cols, .num_heads = request_.num_heads};
  rows_ = ArrangeRows(config, keys, values);
  const auto row_count = static_cast<std::uint64_t>(rows_.row_count());
  blocks_ = rows_.BlocksOf(0, row_count);
  task_ = AttentionTask{.options = options,
                        .queries = queries,
                        .key_dim = keys.cols,
                        .value_dim = values.cols,
                        .num_heads = request_.num_heads,
                        .blocks = blocks_,
                        .begin = 0,
                        .end = row_count,
                        .age_end = row_count,
                        .answer_bytes_max = limits.message_bytes_max,
                        .tiles = context_.tiles};
  SOFTLOOKUP_ASSIGN_OR_RETURN(RankingBudget::Taken ranking,
                              context_.ranking.Take(task_, task_.query_count()));
  ranking_.emplace(std::move(ranking));
  return absl::OkStatus();
}

void AttendJob::Finish(absl::StatusOr<AttentionAnswer> answer, const JobTimes&) {
  // Frees the rows and the bytes to rank them before the callback, because the caller may send
  // another large request at once.
  ranking_.reset();
  blocks_.clear();
  rows_ = {};
  if (!answer.ok()) return callback_(answer.status());
  callback_(LookupResult{.values = std::move(answer->values),
                         .query_count = task_.query_count(),
                         .value_dim = task_.value_dim,
                         .stats = std::move(answer->stats),
                         .weights = std::move(answer->weights)});
}

}  // namespace softlookup
