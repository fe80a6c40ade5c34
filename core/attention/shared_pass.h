#ifndef SOFTLOOKUP_CORE_ATTENTION_SHARED_PASS_H_
#define SOFTLOOKUP_CORE_ATTENTION_SHARED_PASS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/attention/block_scan.h"
#include "core/attention/partial_state.h"
#include "core/attention/task_answer.h"
#include "core/attention/top_rows.h"
#include "core/parallel/fork_join_pool.h"

namespace softlookup {

// Lanes go through the rows together until their best rows may take this much, so that a pass keeps
// no more than this and one lane's.
inline constexpr std::int64_t kCollectorBytesMax = std::int64_t{4} << 20;

// Takes the lanes of some tasks through the rows of their store, block by block: a block is read
// once for all of them, and lanes that ask the same of its rows are scanned together.
class SharedPass {
 public:
  // The tasks have begun, and are over rows of one store. They must outlive the pass.
  SharedPass(absl::Span<TaskAnswer* const> tasks, ForkJoinPool& pool);

  // Finishes all lanes of all tasks, except of those that are cancelled.
  ScannedRows Run();

 private:
  struct Lane {
    TaskAnswer* task = nullptr;
    std::size_t task_index = 0;
    std::int64_t number = 0;  // In its task.
  };

  // Blocks [begin, end) of the pass that a unit scans: one, or a whole group. A thread that scans a
  // group keeps one state a lane, and knows which block is next.
  struct Strip {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    bool ends_group = false;
  };

  // A piece of work for a thread: a strip, for the lanes [begin, end) of the chunk. The states of
  // the strip's lanes begin at `first_slot` of the wave's.
  struct Unit {
    const Strip& strip;
    std::int64_t first_slot = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  // A place in the order of all lanes: those that ask the same of a row come one after another.
  struct Cursor {
    std::size_t kind = 0;
    std::int64_t head = 0;
    std::size_t task = 0;  // Of its kind.
    std::int64_t query = 0;
  };

  // Puts tasks together that ask the same of a row.
  void SortTasks();
  // Finds the blocks that tasks have at the same positions.
  void AlignBlocks();
  // Takes the lanes that go through all blocks next; none at the end.
  void TakeChunk();
  bool TakeLane();
  // Cuts the chunk's work into units: strips of blocks by parts of the lanes.
  void PlanUnits();
  void RunChunk();
  bool AnyContinues() const;
  void ScanWave(std::int64_t strip_begin, std::int64_t strip_end);
  void ScanUnit(const Unit& unit);
  // Scans one of a unit's blocks for its lanes [lane, result) that ask the same of its rows.
  // `is_first`: nobody of the unit has scanned the block yet.
  std::int64_t ScanTile(const Unit& unit, std::int64_t block, std::int64_t lane, bool& is_first);
  // The place of that scan, for the lanes [lane, end).
  ScanOrder OrderOf(const Unit& unit, std::int64_t block, std::int64_t lane, std::int64_t end,
                    bool is_first) const;
  // Merges the wave's states into the chunk's: first those of a group, then group after group.
  void MergeWave(std::int64_t strip_begin, std::int64_t strip_end);

  // Null if the lane's task has no rows there.
  const PositionedBlock* BlockOf(std::int64_t block, const Lane& lane) const {
    return blocks_[static_cast<std::size_t>(block)][lane.task_index];
  }
  const Lane& LaneOf(std::int64_t lane) const { return lanes_[static_cast<std::size_t>(lane)]; }
  std::int64_t lane_count() const { return static_cast<std::int64_t>(lanes_.size()); }
  // Whether two lanes of the chunk ask the same of a row.
  bool AskTheSame(const Lane& a, const Lane& b) const;
  // Where the sums of a lane begin, of the chunk or of a wave.
  std::int64_t SumsOffset(std::int64_t lane) const { return lane * sums_stride_; }
  std::int64_t StateBytes() const {
    return static_cast<std::int64_t>(sizeof(PartialState)) + 8 * sums_stride_;
  }
  // Runs body(i) for i in [0, count), here or on all threads.
  void ForEach(std::int64_t count, absl::FunctionRef<void(std::int64_t)> body);

  const std::vector<TaskAnswer*> tasks_;
  ForkJoinPool& pool_;
  bool is_large_ = false;
  std::int64_t sums_stride_ = 0;                 // 0: no task wants sums.
  std::vector<std::vector<std::size_t>> kinds_;  // Of each kind, the tasks.
  std::vector<std::size_t> kind_of_;             // Of each task.
  // In position order: of each task, the block that begins there.
  std::vector<std::vector<const PositionedBlock*>> blocks_;
  std::vector<kernels::RowRange> block_rows_;  // Of each of them: those that any task wants.
  // Behind the last block of each group: numbers with the same quotient by kGroupBlocks.
  std::vector<std::int64_t> group_ends_;
  Cursor next_;
  std::uint64_t scanned_row_count_ = 0;
  std::uint64_t row_bytes_ = 0;  // As they are kept.

  // Of the chunk in progress.
  std::vector<Lane> lanes_;
  std::deque<TopRows> collectors_;
  std::vector<HeadQuery> queries_;
  std::vector<LaneState> states_;
  std::vector<double> sums_;
  std::vector<Strip> strips_;
  std::int64_t unit_lanes_ = 0;
  // Of the wave in progress: [strip][lane of the chunk].
  std::vector<PartialState> wave_states_;
  std::unique_ptr<double[]> wave_sums_;
  std::int64_t wave_slots_ = 0;  // Room for so many.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_SHARED_PASS_H_
