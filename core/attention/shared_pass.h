#ifndef SOFTLOOKUP_CORE_ATTENTION_SHARED_PASS_H_
#define SOFTLOOKUP_CORE_ATTENTION_SHARED_PASS_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/attention/aligned_blocks.h"
#include "core/attention/block_scan.h"
#include "core/attention/first_look.h"
#include "core/attention/head_query_order.h"
#include "core/attention/task_answer.h"
#include "core/attention/top_rows.h"
#include "core/attention/work_cut.h"
#include "core/parallel/fork_join_pool.h"
#include "softlookup/partial_answer.h"

namespace softlookup {

// Once the best rows of a round's head queries can take this many bytes, the round takes no more
// head queries. So a pass never keeps more than this plus the best rows of one head query. Lists of
// weights ALL do not count here, because the limit on the answer bounds them.
inline constexpr std::int64_t kCollectorBytesMax = std::int64_t{4} << 20;

// One walk over the rows of a store that computes several tasks. It reads each block once for all
// tasks of a round. A tile can hold head queries of several tasks, if they can be scanned together.
//
// The pass runs in rounds, each of which takes some head queries through all blocks. The work of a
// round is cut into items: a range of blocks for some of the head queries. Threads take the items
// one after another. An item makes one state for each of its head queries. The states of several
// block ranges make a window of bounded size. Once all items of the window are scanned, its states
// are merged in the order of blocks.
class SharedPass {
 public:
  // TaskAnswer::Begin must have succeeded for each task. The tasks must be over rows of one store,
  // and outlive the pass.
  SharedPass(absl::Span<TaskAnswer* const> tasks, ForkJoinPool& pool);

  // Finishes the head queries of all tasks, except of tasks that are cancelled meanwhile. Returns
  // what the pass has read.
  ScannedRows Run();

 private:
  // A block range, and the head queries [begin, end) of the round. The state of head query q is the
  // window's state `states_begin` + q.
  struct WorkItem {
    const BlockRange& blocks;
    std::int64_t states_begin = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  bool AnyTaskContinues() const;
  // Takes the head queries of the next round. At the end it takes none.
  void TakeRound();
  void RunRound();
  // Runs the round's first look. It finds the head queries that need only few rows scanned, and
  // which rows these are.
  void LookFirst();
  // Sorts the round's head queries: first those that scan all rows, then those that scan
  // candidates. A tile has head queries of one kind only, so sorting makes tiles larger.
  void SortByLook();
  void ChooseScanBlocks();  // Sets scan_blocks_.

  // Scans the window: block ranges [ranges_begin, ranges_end) of the round.
  void ScanWindow(std::int64_t ranges_begin, std::int64_t ranges_end);
  void ScanItem(const WorkItem& item);
  // Scans the item's block scan_blocks_[at] for a tile of head queries from `query` on. Returns the
  // head query after the tile. `is_first` must be true in the item's first call for a block.
  // ScanTile sets it to false when it scans the whole block, so that later scans can tell.
  std::int64_t ScanTile(const WorkItem& item, std::int64_t at, std::int64_t query, bool& is_first);
  // Returns what the scan of the tile [query, end) has to know about the scans around it, such as
  // what to prefetch.
  ScanOrder OrderOf(const WorkItem& item, std::int64_t at, std::int64_t query, std::int64_t end,
                    bool is_first) const;
  // Returns an estimate of the bytes of all rows in scan_blocks_. `shape` must be the shape of
  // their panels.
  std::int64_t ScanBytes(const kernels::PanelShape& shape) const;
  // Merges the window's states into the round's, one merge group after another. Within a group,
  // merges all states into the first one, and then the first one into the round's.
  void MergeWindow(std::int64_t ranges_begin, std::int64_t ranges_end);

  std::int64_t query_count() const { return static_cast<std::int64_t>(refs_.size()); }
  const HeadQueryRef& RefOf(std::int64_t query) const {
    return refs_[static_cast<std::size_t>(query)];
  }
  // Returns the block of the head query's task at block `block` of the pass, or null if the task
  // has none there.
  const PositionedBlock* BlockOf(std::int64_t block, const HeadQueryRef& query) const {
    return blocks_.Of(query.task_index, block);
  }
  std::int64_t scan_block(std::int64_t at) const {
    return scan_blocks_[static_cast<std::size_t>(at)];
  }
  const BlockRange& RangeOf(std::int64_t range) const {
    return work_.ranges[static_cast<std::size_t>(range)];
  }
  // Returns where the sums of a state begin, in the round's sums or the window's.
  std::int64_t SumsOffset(std::int64_t state) const { return state * sums_stride_; }
  std::int64_t StateBytes() const {
    return static_cast<std::int64_t>(sizeof(PartialState)) + 8 * sums_stride_;
  }
  // Runs body(i) for i in [0, count), on all threads if the pass is large, else on this one.
  void ForEach(std::int64_t count, absl::FunctionRef<void(std::int64_t)> body);

  const std::vector<TaskAnswer*> tasks_;
  ForkJoinPool& pool_;
  HeadQueryOrder order_;
  const AlignedBlocks blocks_;
  FirstLook look_;
  bool may_look_ = false;  // True if a first look may serve some task.
  // True if the pass costs more than kInlineCostMax. The threads of pool_ then help.
  bool is_large_ = false;
  std::int64_t sums_stride_ = 0;  // Doubles of one state. 0: no task wants sums.
  // What the rounds so far have read, as in ScannedRows. scanned_row_count_ does not include the
  // rows that second looks scan, which candidate_row_count_ counts.
  std::int64_t scanned_row_count_ = 0;
  std::int64_t sketched_row_count_ = 0;
  std::int64_t skipped_block_count_ = 0;
  std::atomic<std::int64_t> candidate_row_count_{0};

  // The round in progress. refs_, queries_, states_ and sums_ are by head query of the round.
  std::vector<HeadQueryRef> refs_;
  std::deque<TopRows> collectors_;
  std::vector<HeadQuery> queries_;
  std::vector<HeadQueryState> states_;
  std::vector<double> sums_;
  // The blocks of the pass that have rows to scan for some head query, ascending.
  std::vector<std::int64_t> scan_blocks_;
  WorkCut work_;  // Its block numbers are indices in scan_blocks_.
  // The window in progress: [range][head query of the round].
  std::vector<PartialState> window_states_;
  std::unique_ptr<double[]> window_sums_;
  std::int64_t window_size_ = 0;  // States that the window has room for.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_SHARED_PASS_H_
