#ifndef SOFTLOOKUP_CORE_ATTENTION_SHARED_PASS_H_
#define SOFTLOOKUP_CORE_ATTENTION_SHARED_PASS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/attention/aligned_blocks.h"
#include "core/attention/first_look.h"
#include "core/attention/head_query_order.h"
#include "core/attention/head_query_round.h"
#include "core/attention/pass_task.h"
#include "core/attention/pass_threads.h"
#include "core/attention/round_scan.h"
#include "core/attention/task_answer.h"
#include "core/parallel/fork_join_pool.h"
#include "softlookup/partial_answer.h"

namespace softlookup {

// Once the best rows of a round's head queries can take this many bytes, the round takes no more
// head queries. So a pass never keeps more than this plus the best rows of one head query. Lists of
// weights ALL do not count here, because the limit on the answer bounds them.
inline constexpr std::int64_t kCollectorBytesMax = std::int64_t{4} << 20;

// Takes the head queries of several tasks through the rows of a store, one round after another.
//
// A round takes some head queries of any tasks through all blocks together. FirstLook finds what
// has to be scanned for them, and RoundScan scans it in windows. The pass bounds the bytes that the
// states of a round and of a window take.
class SharedPass {
 public:
  // `answers` are those to the tasks of the pass. TaskAnswer::Begin must have succeeded for all of
  // them. Their tasks must be such as AttendTogether takes, and each must have at least one query.
  // The answers must outlive the pass.
  SharedPass(absl::Span<TaskAnswer* const> answers, ForkJoinPool& pool);

  // Finishes the head queries of all tasks, except of tasks that are cancelled meanwhile. Returns
  // what the pass has read.
  ScannedRows Run();

 private:
  bool AnyTaskContinues() const;
  // Sets round_.refs to the head queries of the next round. Leaves it empty if there are none left.
  void TakeRound();
  void RunRound();
  // Sorts the round's head queries: first those that scan all rows, then those that scan
  // candidates. A tile has head queries of one kind only, so sorting makes tiles larger.
  void SortByLook();
  // Sets work_. Head queries that scan all rows must come first in the round.
  void CutRound();
  // Scans the round. Returns false, without going on, once all tasks are cancelled.
  bool ScanRound();
  void FinishRound();
  // Returns the answer to the task of a head query of the round.
  TaskAnswer& AnswerOf(std::int64_t query) const {
    return *answers_[round_.RefOf(query).task_index];
  }

  const std::vector<TaskAnswer*> answers_;  // By task of the pass.
  const std::vector<PassTask*> tasks_;
  const PassThreads threads_;
  HeadQueryOrder order_;
  const AlignedBlocks blocks_;
  FirstLook look_;
  bool may_look_ = false;  // True if a first look may serve some task.
  // Rows that the rounds so far have read, without those that second looks have scanned.
  std::int64_t scanned_row_count_ = 0;

  // The round in progress.
  HeadQueryRound round_;
  RoundWork work_;
  RoundScan scan_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_SHARED_PASS_H_
