#include "core/engine/lookup_job.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/cost.h"
#include "core/base/status_macros.h"
#include "core/engine/memories.h"
#include "core/engine/project.h"
#include "core/engine/validate.h"

namespace softlookup {

absl::Status LookupJob::Select(const LookupRequest& request,
                               std::shared_ptr<const Snapshot> snapshot) {
  const StoreConfig& config = snapshot->config();
  const Limits& limits = context_.limits;
  SOFTLOOKUP_RETURN_IF_ERROR(CheckLookup(request, config, limits));
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      const ResolvedOptions options,
      ResolveOptions(request.options, config.score, config.temperature, limits));
  SOFTLOOKUP_ASSIGN_OR_RETURN(selection_, RowSelection::Make(*snapshot, request.filter, "filter."));
  inputs_ = request.inputs;
  task_ = AttentionTask{.options = options,
                        .queries = request.queries,
                        .key_dim = config.key_dim,
                        .value_dim = config.value_dim,
                        .num_heads = config.num_heads,
                        .blocks = selection_.blocks(),
                        .begin = selection_.begin(),
                        .end = selection_.end(),
                        .age_end = selection_.end(),
                        .answer_bytes_max = limits.message_bytes_max,
                        .tiles = context_.tiles};
  // With kMemory, the memory stands for all rows before the selection's end. With kRowsAndMemory,
  // it stands for the rows before the selection's begin.
  std::size_t memory_index = 0;
  std::uint64_t memory_end = 0;
  if (request.source == Source::kMemory) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(memory_index, FindMemory(config, request.memory));
    memory_end = selection_.end();
    task_.blocks = {};
    task_.begin = task_.end;
  } else if (request.source == Source::kRowsAndMemory) {
    memory_end = selection_.begin();
  }
  if (memory_end > 0) {
    memory_ = snapshot->MemoryAsOf(memory_end, memory_index)->Read();
    task_.memory = MemoryPair{
        .key = memory_.key.data(),
        .value = memory_.value.data(),
        .multiplicity = request.source == Source::kMemory ? 1 : static_cast<double>(memory_end),
        .position = memory_end - 1};
  }
  snapshot_ = std::move(snapshot);
  SOFTLOOKUP_ASSIGN_OR_RETURN(RankingBudget::Taken ranking,
                              context_.ranking.Take(task_, query_count()));
  ranking_.emplace(std::move(ranking));
  return absl::OkStatus();
}

double LookupJob::SelectCost(const LookupRequest& request, const Snapshot& snapshot) {
  const RowFilter& filter = request.filter;
  const std::uint64_t row_count = snapshot.row_count();
  double cost = 0;
  const std::size_t tags = filter.ids.size() + filter.exclude_ids.size() +
                           filter.any_labels.size() + filter.no_labels.size();
  if (tags > 0) {
    const std::uint64_t end = std::min(filter.end.value_or(row_count), row_count);
    const std::uint64_t begin = std::min(filter.begin.value_or(0), end);
    cost += SelectionCost(tags, std::min(end - begin, filter.last.value_or(row_count)));
  }
  if (request.source == Source::kMemory || request.source == Source::kRowsAndMemory) {
    const StoreConfig& config = snapshot.config();
    const auto block_rows = static_cast<std::uint64_t>(snapshot.stored_blocks().block_rows());
    cost += PassOverRowsCost(std::min(row_count, block_rows), config.key_dim + config.value_dim);
  }
  return cost;
}

double LookupJob::cost() const {
  if (!inputs_) return task_.cost();
  AttentionTask task = task_;
  task.queries.rows = inputs_->rows;
  return task.cost() +
         ProjectionCost(static_cast<std::int64_t>(snapshot_->config().projection->query.size()),
                        inputs_->rows);
}

QueuedJob LookupJob::Queued(std::unique_ptr<LookupJob> job, std::uint64_t store) {
  SOFTLOOKUP_CHECK(job->snapshot_ != nullptr) << "Select comes first";
  const double cost = job->cost();
  const std::int64_t query_count = job->query_count();
  const absl::Duration answer_time_max = job->context_.limits.lookup_wait_max;
  // A lookup that lists all weights shares no pass: it holds too many bytes until the pass ends.
  const bool shares_pass = job->task_.options.weights != WeightsMode::kAll;
  return {.store = store,
          .query_count = query_count,
          .shares_pass = shares_pass,
          .cost = cost,
          .reading_cost = ReadingCost(cost, query_count),
          .answer_time_max = answer_time_max,
          .job = std::move(job)};
}

void LookupJob::AddTimes(const JobTimes& times) {
  times_.queue += times.queue;
  times_.compute += times.compute;
}

absl::Status LookupJob::Prepare() {
  if (!inputs_) return absl::OkStatus();
  const StoreConfig& config = snapshot_->config();
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      queries_, Project("inputs", config.projection->query, config.key_dim, *inputs_, *cancel_));
  task_.queries = {.data = queries_.data(), .rows = inputs_->rows, .cols = config.key_dim};
  return absl::OkStatus();
}

void LookupJob::Refuse(absl::Status status) {
  Report();
  callback_(std::move(status));
}

void LookupJob::Finish(absl::StatusOr<AttentionAnswer> answer, const JobTimes& times) {
  AddTimes(times);
  context_.lookup_queue_time.Observe(times_.queue);
  context_.lookup_compute_time.Observe(times_.compute);
  Report();
  // Free these bytes before the callback: the caller may send another request as large at once.
  ranking_.reset();
  if (!answer.ok()) return callback_(answer.status());
  std::uint64_t summed_rows = 0;
  for (const QueryStats& stats : answer->stats) summed_rows += stats.summed_rows;
  context_.summed_rows.fetch_add(summed_rows, std::memory_order_relaxed);
  callback_(ResultOf(*std::move(answer)));
}

void LookupJob::Report() {
  if (report_ == nullptr) return;
  report_->queue_wait = absl::FromChrono(times_.queue);
  report_->compute = absl::FromChrono(times_.compute);
  report_->scanned_rows = task_.row_count();
}

LookupResult LookupJob::ResultOf(AttentionAnswer answer) const {
  SOFTLOOKUP_CHECK(static_cast<std::int64_t>(answer.values.size()) ==
                   task_.query_count() * task_.value_dim)
      << answer.values.size() << " components for " << task_.query_count() << " queries of "
      << task_.value_dim;
  LookupResult result{.values = std::move(answer.values),
                      .query_count = task_.query_count(),
                      .value_dim = task_.value_dim,
                      .stats = std::move(answer.stats),
                      .weights = std::move(answer.weights),
                      .revision = snapshot_->revision(),
                      .row_count = snapshot_->row_count()};
  // A running memory is listed like a row, but has no id. Its position is outside of the rows that
  // were scanned.
  for (QueryWeights& weights : result.weights) {
    for (WeightedRow& row : weights.rows) {
      if (row.position >= task_.begin && row.position < task_.end) {
        row.id = snapshot_->IdAt(row.position);
      }
    }
  }
  return result;
}

}  // namespace softlookup
