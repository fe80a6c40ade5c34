#include "core/attention/shared_pass.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/attention/look_choice.h"
#include "core/attention/work_cut.h"
#include "core/base/check.h"
#include "core/kernels/sum_values.h"

namespace softlookup {
namespace {

using kernels::kTileQueries;

// Most bytes of a window's states, unless those of kMergeGroupBlocks block ranges have more.
constexpr std::int64_t kWindowBytesMax = std::int64_t{32} << 20;
// Most bytes of a round's states, unless one head query's state has more.
constexpr std::int64_t kRoundBytesMax = std::int64_t{4} << 20;
// Most bytes of the bounds of a round's first look, unless those of one tile have more.
constexpr std::int64_t kLookBytesMax = std::int64_t{64} << 20;

std::vector<PassTask*> TasksOf(absl::Span<TaskAnswer* const> answers) {
  std::vector<PassTask*> tasks;
  tasks.reserve(answers.size());
  for (TaskAnswer* const answer : answers) tasks.push_back(&answer->pass_task());
  return tasks;
}

double CostOf(absl::Span<PassTask* const> tasks) {
  double cost = 0;
  for (const PassTask* const task : tasks) cost += task->attention_task().cost();
  return cost;
}

}  // namespace

SharedPass::SharedPass(absl::Span<TaskAnswer* const> answers, ForkJoinPool& pool)
    : answers_(answers.begin(), answers.end()),
      tasks_(TasksOf(answers)),
      threads_(pool, CostOf(tasks_)),
      order_(tasks_),
      blocks_(tasks_),
      look_(blocks_, order_),
      scan_(blocks_, order_, work_, threads_, round_) {
  for (const PassTask* const task : tasks_) {
    const HeadQueries& queries = task->head_queries();
    may_look_ |= MayHaveLooks(queries);
    if (queries.sums_values()) {
      round_.sums_stride = kernels::PaddedValueDim(queries.head_value_dim());
    }
  }
}

ScannedRows SharedPass::Run() {
  for (TakeRound(); !round_.refs.empty() && AnyTaskContinues(); TakeRound()) RunRound();
  const std::int64_t rows = scanned_row_count_ + scan_.candidate_row_count();
  return {.rows = static_cast<std::uint64_t>(rows),
          .bytes = static_cast<std::uint64_t>(rows * blocks_.row_bytes()),
          .sketched_rows = static_cast<std::uint64_t>(look_.sketched_row_count()),
          .skipped_blocks = static_cast<std::uint64_t>(look_.skipped_block_count())};
}

bool SharedPass::AnyTaskContinues() const {
  return std::ranges::any_of(tasks_, [](PassTask* task) { return task->Continues(); });
}

void SharedPass::TakeRound() {
  std::int64_t queries_max = std::max<std::int64_t>(1, kRoundBytesMax / round_.StateBytes());
  if (may_look_) {
    queries_max = std::min(
        queries_max, std::max<std::int64_t>(kTileQueries, kLookBytesMax / look_.BytesPerQuery()));
  }
  std::vector<HeadQueryRef>& refs = round_.refs;
  refs.clear();
  std::int64_t collector_bytes = 0;
  HeadQueryOrder::Cursor behind_whole_tiles = order_.cursor();
  for (;;) {
    if (round_.size() % kTileQueries == 0) behind_whole_tiles = order_.cursor();
    if (round_.size() == queries_max || collector_bytes >= kCollectorBytesMax) break;
    const std::optional<HeadQueryRef> next = order_.Next();
    if (!next) return;
    refs.push_back(*next);
    collector_bytes += next->task->head_queries().CollectorBytes();
  }
  if (round_.size() <= kTileQueries) return;
  refs.resize(refs.size() / kTileQueries * kTileQueries);
  order_.SeekTo(behind_whole_tiles);
}

void SharedPass::RunRound() {
  round_.Measure(threads_);
  round_.SortByErrors();
  round_.Begin();
  if (look_.Run(threads_, round_)) SortByLook();
  CutRound();
  if (ScanRound()) FinishRound();
}

void SharedPass::SortByLook() {
  std::vector<std::int64_t> order(round_.refs.size());
  std::iota(order.begin(), order.end(), 0);
  const auto middle = std::stable_partition(order.begin(), order.end(), [this](std::int64_t q) {
    return round_.CandidatesOf(q) == nullptr;
  });
  if (middle != order.begin() && middle != order.end()) round_.Sort(order);
}

void SharedPass::CutRound() {
  work_.blocks.clear();
  // Head queries whose rows are all scanned come first.
  if (round_.CandidatesOf(0) != nullptr) {
    work_.blocks = look_.CandidateBlocks();
  } else {
    work_.blocks.resize(static_cast<std::size_t>(blocks_.count()));
    std::iota(work_.blocks.begin(), work_.blocks.end(), 0);
  }
  CutWork(
      {.block_count = std::ssize(work_.blocks),
       .query_count = round_.size(),
       .thread_count = threads_.pool_thread_count()},
      [this](std::int64_t at) { return blocks_.merge_group_of(work_.BlockAt(at)); }, work_.cut);
}

bool SharedPass::ScanRound() {
  const std::int64_t range_count = std::ssize(work_.cut.ranges);
  const std::int64_t window_ranges_max = std::max(
      kWindowBytesMax / (round_.size() * round_.StateBytes()), AlignedBlocks::kMergeGroupBlocks);
  // Head queries whose rows are all scanned, if there are any, come first.
  const bool any_whole = round_.CandidatesOf(0) == nullptr;
  for (std::int64_t begin = 0; begin < range_count;) {
    std::int64_t end = std::min(begin + window_ranges_max, range_count);
    while (!work_.RangeOf(end - 1).ends_group) --end;
    SOFTLOOKUP_CHECK(end > begin) << "a merge group is larger than a window";
    scan_.AddWindow(begin, end);
    for (std::int64_t at = work_.RangeOf(begin).begin; any_whole && at < work_.RangeOf(end - 1).end;
         ++at) {
      const kernels::RowRange rows = blocks_.rows(work_.BlockAt(at));
      scanned_row_count_ += rows.end - rows.begin;
    }
    if (!AnyTaskContinues()) return false;
    begin = end;
  }
  return true;
}

void SharedPass::FinishRound() {
  for (std::int64_t q = 0; q < round_.size(); ++q) {
    HeadQueryState& found = round_.StateOf(q);
    if (const Candidates* candidates = round_.CandidatesOf(q)) {
      round_.RefOf(q).task->head_queries().CountLeftOut(candidates->ln_left_out, found);
    }
    AnswerOf(q).CountListed(found);
  }
  threads_.ForEach(round_.size(), [this](std::int64_t q) {
    AnswerOf(q).FinishHeadQuery(round_.RefOf(q).number, round_.StateOf(q), round_.SumsOf(q));
  });
}

}  // namespace softlookup
