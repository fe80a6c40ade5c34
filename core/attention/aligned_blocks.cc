#include "core/attention/aligned_blocks.h"

#include <algorithm>
#include <iterator>

#include "core/base/check.h"

namespace softlookup {

using kernels::RowRange;

AlignedBlocks::AlignedBlocks(absl::Span<PassTask* const> tasks) {
  FindRuns(tasks);
  bool are_whole = true;
  for (const PassTask* const pass_task : tasks) {
    const AttentionTask& task = pass_task->attention_task();
    const BlocksSummary& summary = pass_task->head_queries().summary();
    tasks_.push_back({.blocks = task.blocks});
    are_whole &= task.blocks.data() == tasks_[0].blocks.data() &&
                 task.blocks.size() == tasks_[0].blocks.size() && task.begin <= summary.begin &&
                 task.end >= summary.end;
    if (task.blocks.empty()) continue;
    const std::int64_t number = task.blocks.front().number;
    SOFTLOOKUP_CHECK(task.blocks.back().number - number + 1 == std::ssize(task.blocks))
        << "the numbers of blocks have a gap";
    const Run& run = RunWith(number);
    tasks_.back().begin = run.begin + number - run.number;
    panels_max_ = std::max(panels_max_, summary.panels_max);
    row_bytes_ = task.blocks.front().view.shape.row_bytes();
  }
  if (!are_whole) UniteRows(tasks);
}

void AlignedBlocks::FindRuns(absl::Span<PassTask* const> tasks) {
  struct Numbers {
    std::int64_t begin = 0, end = 0;
  };
  std::vector<Numbers> numbers;
  for (const PassTask* const task : tasks) {
    const absl::Span<const PositionedBlock> blocks = task->attention_task().blocks;
    if (blocks.empty()) continue;
    numbers.push_back({.begin = blocks.front().number, .end = blocks.back().number + 1});
  }
  std::ranges::sort(numbers, {}, &Numbers::begin);
  for (const Numbers& next : numbers) {
    if (runs_.empty() || next.begin > runs_.back().number + runs_.back().count) {
      runs_.push_back({.number = next.begin, .begin = count_});
    }
    Run& run = runs_.back();
    run.count = std::max(run.count, next.end - run.number);
    count_ = run.begin + run.count;
  }
}

const AlignedBlocks::Run& AlignedBlocks::RunWith(std::int64_t number) const {
  return *std::prev(std::ranges::upper_bound(runs_, number, {}, &Run::number));
}

std::int64_t AlignedBlocks::NumberOf(std::int64_t block) const {
  const Run& run = *std::prev(std::ranges::upper_bound(runs_, block, {}, &Run::begin));
  return run.number + block - run.begin;
}

void AlignedBlocks::UniteRows(absl::Span<PassTask* const> tasks) {
  rows_.resize(static_cast<std::size_t>(count_));
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const AttentionTask& task = tasks[i]->attention_task();
    for (std::size_t b = 0; b < task.blocks.size(); ++b) {
      const PositionedBlock& block = task.blocks[b];
      const RowRange rows = {.begin = block.FirstRowFrom(task.begin),
                             .end = block.FirstRowFrom(task.end)};
      RowRange& all = rows_[static_cast<std::size_t>(tasks_[i].begin) + b];
      const bool is_first = all.end == 0;
      all = {.begin = is_first ? rows.begin : std::min(all.begin, rows.begin),
             .end = std::max(all.end, rows.end)};
    }
  }
}

std::int64_t AlignedBlocks::sketched_row_count(std::int64_t block_index) const {
  for (std::size_t task = 0; task < tasks_.size(); ++task) {
    const PositionedBlock* block = Of(task, block_index);
    if (block != nullptr && block->sketch != nullptr) return block->view.row_count;
  }
  return 0;
}

}  // namespace softlookup
