#include "core/attention/work_cut.h"

#include "core/base/part_count.h"
#include "core/kernels/panel.h"

namespace softlookup {
namespace {

using kernels::kTileQueries;

// Work items wanted per thread. With this many, all threads end at about the same time.
constexpr std::int64_t kItemsPerThread = 16;
// Most head queries of a work item whose block range is a whole merge group. All of them scan a
// block while it is in the second-level cache.
constexpr std::int64_t kItemQueriesMax = 128;

}  // namespace

void CutWork(const WorkSize& size, absl::FunctionRef<std::int64_t(std::int64_t)> group_of,
             WorkCut& cut) {
  const auto ends_group = [&](std::int64_t block) {
    return block + 1 == size.block_count || group_of(block) != group_of(block + 1);
  };
  std::int64_t group_count = 0;
  for (std::int64_t block = 0; block < size.block_count; ++block) {
    group_count += ends_group(block) ? 1 : 0;
  }
  const std::int64_t items_wanted = size.thread_count * kItemsPerThread;
  cut.ranges.clear();
  // Ranges of whole groups leave fewer states to merge. They are chosen if they give enough items
  // for all threads. Otherwise each block is a range.
  for (cut.item_queries = kItemQueriesMax; cut.item_queries >= kItemQueriesMax / 4;
       cut.item_queries /= 2) {
    if (group_count * PartCount(size.query_count, cut.item_queries) < items_wanted) continue;
    std::int64_t begin = 0;
    for (std::int64_t block = 0; block < size.block_count; ++block) {
      if (!ends_group(block)) continue;
      cut.ranges.push_back({.begin = begin, .end = block + 1, .ends_group = true});
      begin = block + 1;
    }
    return;
  }
  for (std::int64_t block = 0; block < size.block_count; ++block) {
    cut.ranges.push_back({.begin = block, .end = block + 1, .ends_group = ends_group(block)});
  }
  cut.item_queries = PartCount(size.query_count, kTileQueries) * kTileQueries;
  while (cut.item_queries > kTileQueries &&
         size.block_count * PartCount(size.query_count, cut.item_queries) < items_wanted) {
    cut.item_queries = PartCount(cut.item_queries / 2, kTileQueries) * kTileQueries;
  }
}

}  // namespace softlookup
