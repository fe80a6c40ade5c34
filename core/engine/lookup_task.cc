#include "core/engine/lookup_task.h"

#include <algorithm>
#include <utility>

#include "core/base/cost.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/engine/memories.h"
#include "core/engine/project.h"
#include "core/engine/validate.h"
#include "core/store/kept_ranges.h"
#include "softlookup/partial_lookup.h"

namespace softlookup {

absl::Status LookupTask::Select(const LookupRequest& request,
                                std::shared_ptr<const Snapshot> snapshot,
                                std::optional<PositionRange> part) {
  SOFTLOOKUP_RETURN_IF_ERROR(SelectWithoutRanking(request, std::move(snapshot), part));
  SOFTLOOKUP_ASSIGN_OR_RETURN(RankingBudget::Taken ranking,
                              context_.ranking.Take(task_, query_count()));
  ranking_.emplace(std::move(ranking));
  return absl::OkStatus();
}

absl::Status LookupTask::SelectWithoutRanking(const LookupRequest& request,
                                              std::shared_ptr<const Snapshot> snapshot,
                                              std::optional<PositionRange> part) {
  const StoreConfig& config = snapshot->config();
  const Limits& limits = context_.limits;
  SOFTLOOKUP_RETURN_IF_ERROR(CheckLookup(request, config, limits));
  if (request.refuses_ranges && !part.has_value() && !config.ranges.empty()) {
    return MakeError(kStoreHasRanges, "The store is cut into ranges, which answer in parts");
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      const ResolvedOptions options,
      ResolveOptions(request.options, config.score, config.temperature, limits));
  SOFTLOOKUP_ASSIGN_OR_RETURN(selection_, RowSelection::Make(*snapshot, request.filter, "filter.",
                                                             part.value_or(PositionRange())));
  if (request.source != Source::kMemory &&
      !snapshot->stored_blocks().AreResident(selection_.begin(), selection_.end())) {
    return RowsNotResident(config.name, {.begin = selection_.begin(), .end = selection_.end()});
  }
  snapshot_ = std::move(snapshot);  // selection_ points into it, and so does task_.
  inputs_ = request.inputs;
  task_ = AttentionTask{.options = options,
                        .queries = request.queries,
                        .key_dim = config.key_dim,
                        .value_dim = config.value_dim,
                        .num_heads = config.num_heads,
                        .blocks = selection_.blocks(),
                        .summary = selection_.summary(),
                        .begin = selection_.begin(),
                        .end = selection_.end(),
                        .age_end = selection_.filtered().end,
                        .answer_bytes_max = limits.message_bytes_max,
                        .tiles = context_.tiles};
  // With kMemory, the memory stands for all rows before the selection's end. With kRowsAndMemory,
  // it stands for the rows before the selection's begin.
  PositionRange filtered = selection_.filtered();
  std::size_t memory_index = 0;
  std::uint64_t memory_end = 0;
  if (request.source == Source::kMemory) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(memory_index, FindMemory(config, request.memory));
    memory_end = filtered.end;
    filtered.begin = filtered.end;
    task_.blocks = {};
    task_.summary = nullptr;
    task_.begin = task_.end;
  } else if (request.source == Source::kRowsAndMemory) {
    memory_end = filtered.begin;
  }
  if (part) task_.whole = WholeTask{.begin = filtered.begin, .end = filtered.end};
  if (memory_end > 0) {
    const MemoryRow row{
        .position = memory_end - 1,
        .multiplicity = request.source == Source::kMemory ? 1 : static_cast<double>(memory_end)};
    if (part) task_.whole->memory = row;
    if (!part || part->Has(row.position)) {
      SOFTLOOKUP_RETURN_IF_ERROR(TakeMemory(row, memory_index));
    }
  }
  return absl::OkStatus();
}

absl::Status LookupTask::TakeMemory(const MemoryRow& row, std::size_t memory_index) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::unique_ptr<RunningMemory> memory,
                              snapshot_->MemoryAsOf(row.position + 1, memory_index));
  memory_ = memory->Read();
  task_.memory = MemoryPair{.key = memory_.key.data(),
                            .value = memory_.value.data(),
                            .multiplicity = row.multiplicity,
                            .position = row.position};
  return absl::OkStatus();
}

double LookupTask::SelectCost(const LookupRequest& request, const Snapshot& snapshot,
                              std::optional<PositionRange> part) {
  const RowFilter& filter = request.filter;
  const std::uint64_t row_count = snapshot.row_count();
  double cost = 0;
  const std::size_t tags = filter.ids.size() + filter.exclude_ids.size() +
                           filter.any_labels.size() + filter.no_labels.size();
  if (tags > 0) {
    std::uint64_t end = std::min(filter.end.value_or(row_count), row_count);
    std::uint64_t begin = std::min(filter.begin.value_or(0), end);
    begin = end - std::min(end - begin, filter.last.value_or(row_count));
    if (part) {
      end = std::clamp(part->end, begin, end);
      begin = std::clamp(part->begin, begin, end);
    }
    cost += SelectionCost(tags, end - begin);
  }
  if (request.source == Source::kMemory || request.source == Source::kRowsAndMemory) {
    const StoreConfig& config = snapshot.config();
    const auto block_rows = static_cast<std::uint64_t>(snapshot.stored_blocks().block_rows());
    cost += PassOverRowsCost(std::min(row_count, block_rows), config.key_dim + config.value_dim);
  }
  return cost;
}

absl::Status LookupTask::ProjectInputs(const CancelToken& cancel) {
  if (!inputs_) return absl::OkStatus();
  const StoreConfig& config = snapshot_->config();
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      queries_, Project("inputs", config.projection->query, config.key_dim, *inputs_, cancel));
  task_.queries = {.data = queries_.data(), .rows = inputs_->rows, .cols = config.key_dim};
  return absl::OkStatus();
}

double LookupTask::cost() const {
  if (!inputs_) return task_.cost();
  AttentionTask task = task_;
  task.queries.rows = inputs_->rows;
  return task.cost() +
         ProjectionCost(static_cast<std::int64_t>(snapshot_->config().projection->query.size()),
                        inputs_->rows);
}

}  // namespace softlookup
