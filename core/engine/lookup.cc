#include "core/engine/lookup.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/engine/project.h"
#include "core/engine/validate.h"
#include "core/store/store_writer.h"

namespace softlookup {
namespace {

LookupResult ToResult(AttentionAnswer answer, const AttentionTask& task) {
  return {.values = std::move(answer.values),
          .query_count = task.query_count(),
          .value_dim = task.value_dim,
          .stats = std::move(answer.stats),
          .weights = std::move(answer.weights)};
}

// The ids of the listed rows, where rows have them. A memory, which is listed at a position that
// does not take part, has none.
void AddIds(const Snapshot& snapshot, const AttentionTask& task, LookupResult& result) {
  for (QueryWeights& weights : result.weights) {
    for (WeightedRow& row : weights.rows) {
      if (row.position >= task.begin && row.position < task.end) {
        row.id = snapshot.IdAt(row.position);
      }
    }
  }
}

// One of an Attend's three matrices, made of its inputs: projected, or the inputs themselves.
absl::Status MakeOfInputs(const AttendRequest& request, std::vector<float> Projection::*weights,
                          const CancelToken& cancel, std::vector<float>& projected,
                          MatrixView& matrix) {
  matrix = *request.inputs;
  if (request.projection == nullptr) return absl::OkStatus();
  const std::vector<float>& map = (*request.projection).*weights;
  const std::int64_t dim = static_cast<std::int64_t>(map.size()) / request.projection->input_dim;
  SOFTLOOKUP_ASSIGN_OR_RETURN(projected, Project("inputs", map, dim, *request.inputs, cancel));
  matrix = {.data = projected.data(), .rows = request.inputs->rows, .cols = dim};
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::size_t> FindMemory(const StoreConfig& config, absl::string_view name) {
  if (name.empty() || name == kAverageMemory) return 0;
  for (std::size_t i = 0; i < config.memories.size(); ++i) {
    if (config.memories[i].name == name) return i + 1;
  }
  return MakeError(reasons::kMemoryNotFound,
                   absl::StrCat("The store keeps no memory \"", name, "\""),
                   {{"memory", std::string(name)}});
}

absl::string_view MemoryNameOf(const StoreConfig& config, std::size_t index) {
  return index == 0 ? kAverageMemory : absl::string_view(config.memories[index - 1].name);
}

absl::StatusOr<std::unique_ptr<PreparedLookup>> PreparedLookup::Make(
    const LookupRequest& request, std::shared_ptr<const Snapshot> snapshot, const Limits& limits,
    std::optional<kernels::TileUnit> tiles) {
  const StoreConfig& config = snapshot->config();
  SOFTLOOKUP_RETURN_IF_ERROR(CheckLookup(request, config, limits));
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      const ResolvedOptions options,
      ResolveOptions(request.options, config.score, config.temperature, limits));
  std::unique_ptr<PreparedLookup> lookup(new PreparedLookup);
  SOFTLOOKUP_ASSIGN_OR_RETURN(lookup->selection_,
                              RowSelection::Make(*snapshot, request.filter, "filter."));
  const RowSelection& selection = lookup->selection_;
  lookup->inputs_ = request.inputs;
  AttentionTask& task = lookup->task_;
  task = AttentionTask{.options = options,
                       .queries = request.queries,
                       .key_dim = config.key_dim,
                       .value_dim = config.value_dim,
                       .num_heads = config.num_heads,
                       .blocks = selection.blocks(),
                       .begin = selection.begin(),
                       .end = selection.end(),
                       .age_end = selection.end(),
                       .answer_bytes_max = limits.message_bytes_max,
                       .tiles = tiles};
  // The memory stands for all rows, or for those older than the selection's.
  std::size_t memory_index = 0;
  std::uint64_t memory_end = 0;
  if (request.source == Source::kMemory) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(memory_index, FindMemory(config, request.memory));
    memory_end = selection.end();
    task.blocks = {};
    task.begin = task.end;
  } else if (request.source == Source::kRowsAndMemory) {
    memory_end = selection.begin();
  }
  if (memory_end > 0) {
    lookup->memory_ = snapshot->MemoryAsOf(memory_end, memory_index)->Read();
    task.memory = MemoryPair{
        .key = lookup->memory_.key.data(),
        .value = lookup->memory_.value.data(),
        .multiplicity = request.source == Source::kMemory ? 1 : static_cast<double>(memory_end),
        .position = memory_end - 1};
  }
  lookup->snapshot_ = std::move(snapshot);
  return lookup;
}

double PreparationCost(const LookupRequest& request, const Snapshot& snapshot) {
  const RowFilter& filter = request.filter;
  const std::uint64_t row_count = snapshot.row_count();
  double cost = 0;
  const std::size_t tags = filter.ids.size() + filter.exclude_ids.size() +
                           filter.any_labels.size() + filter.no_labels.size();
  if (tags > 0) {
    const std::uint64_t end = std::min(filter.end.value_or(row_count), row_count);
    const std::uint64_t begin = std::min(filter.begin.value_or(0), end);
    const std::uint64_t rows = std::min(end - begin, filter.last.value_or(row_count));
    cost += 200 * (static_cast<double>(tags) + static_cast<double>(rows));
  }
  if (request.source == Source::kMemory || request.source == Source::kRowsAndMemory) {
    const StoreConfig& config = snapshot.config();
    const std::uint64_t rows =
        std::min(row_count, static_cast<std::uint64_t>(snapshot.block_rows()));
    cost += 20 * static_cast<double>(rows) * static_cast<double>(config.key_dim + config.value_dim);
  }
  return cost;
}

double PreparedLookup::cost() const {
  if (!inputs_) return task_.cost();
  // Its queries are still to come.
  AttentionTask task = task_;
  task.queries.rows = inputs_->rows;
  return task.cost() +
         ProjectionCost(static_cast<std::int64_t>(snapshot_->config().projection->query.size()),
                        inputs_->rows);
}

absl::Status PreparedLookup::Begin(const CancelToken& cancel) {
  if (!inputs_) return absl::OkStatus();
  const StoreConfig& config = snapshot_->config();
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      queries_, Project("inputs", config.projection->query, config.key_dim, *inputs_, cancel));
  task_.queries = {.data = queries_.data(), .rows = inputs_->rows, .cols = config.key_dim};
  return absl::OkStatus();
}

LookupResult PreparedLookup::Finish(AttentionAnswer answer) const {
  LookupResult result = ToResult(std::move(answer), task_);
  result.revision = snapshot_->revision();
  result.row_count = snapshot_->row_count();
  AddIds(*snapshot_, task_, result);
  return result;
}

absl::StatusOr<LookupResult> AttendToRequest(const AttendRequest& request, const Limits& limits,
                                             std::optional<kernels::TileUnit> tiles,
                                             RankingMemory& ranking, ForkJoinPool& pool,
                                             const CancelToken& cancel) {
  MatrixView queries = request.queries, keys = request.keys, values = request.values;
  std::vector<float> projected_queries, projected_keys, projected_values;
  if (request.inputs) {
    SOFTLOOKUP_RETURN_IF_ERROR(
        MakeOfInputs(request, &Projection::key, cancel, projected_keys, keys));
    SOFTLOOKUP_RETURN_IF_ERROR(
        MakeOfInputs(request, &Projection::value, cancel, projected_values, values));
    if (request.self) {
      SOFTLOOKUP_RETURN_IF_ERROR(
          MakeOfInputs(request, &Projection::query, cancel, projected_queries, queries));
    }
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(const ResolvedOptions options,
                              ResolveOptions(request.options, Score::kScaledDot, 1, limits));
  // A store that lives as long as the call.
  StoreWriter store({.name = "attend",
                     .key_dim = keys.cols,
                     .value_dim = values.cols,
                     .num_heads = request.num_heads},
                    StoreWriter::Memories::kNone);
  SOFTLOOKUP_ASSIGN_OR_RETURN(const AppendOutcome rows,
                              store.Append({.keys = keys, .values = values}));
  const std::uint64_t row_count = rows.snapshot->row_count();
  const Snapshot::Blocks blocks = rows.snapshot->BlocksOf(0, row_count);
  const AttentionTask task{.options = options,
                           .queries = queries,
                           .key_dim = keys.cols,
                           .value_dim = values.cols,
                           .num_heads = request.num_heads,
                           .blocks = blocks,
                           .begin = 0,
                           .end = row_count,
                           .age_end = row_count,
                           .answer_bytes_max = limits.message_bytes_max,
                           .tiles = tiles};
  SOFTLOOKUP_ASSIGN_OR_RETURN(const RankingMemory::Taken taken,
                              ranking.Take(task, task.query_count()));
  SOFTLOOKUP_ASSIGN_OR_RETURN(AttentionAnswer answer, Attend(task, pool, cancel));
  return ToResult(std::move(answer), task);
}

}  // namespace softlookup
