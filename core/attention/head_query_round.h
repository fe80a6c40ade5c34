#ifndef SOFTLOOKUP_CORE_ATTENTION_HEAD_QUERY_ROUND_H_
#define SOFTLOOKUP_CORE_ATTENTION_HEAD_QUERY_ROUND_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/types/span.h"
#include "core/attention/block_scan.h"
#include "core/attention/head_queries.h"
#include "core/attention/head_query_order.h"
#include "core/attention/pass_threads.h"
#include "core/attention/second_look.h"
#include "core/attention/top_rows.h"

namespace softlookup {

// The head queries that a pass takes through all blocks together, and what is known of each so far.
// All vectors are by head query of the round.
struct HeadQueryRound {
  // How many doubles the sums of one state take. 0: no task of the pass wants sums.
  std::int64_t sums_stride = 0;
  std::vector<HeadQueryRef> refs;
  std::vector<HeadQuery> queries;
  std::vector<HeadQueryState> states;
  std::vector<double> sums;  // [head query][sums_stride]
  // What a first look leaves to scan. Not owned. Null for a head query whose rows are all scanned.
  std::vector<const Candidates*> candidates;
  std::deque<TopRows> collectors;  // Of all head queries. `queries` and `states` refer to them.

  std::int64_t size() const { return static_cast<std::int64_t>(refs.size()); }
  const HeadQueryRef& RefOf(std::int64_t query) const {
    return refs[static_cast<std::size_t>(query)];
  }
  const Candidates* CandidatesOf(std::int64_t query) const {
    return candidates[static_cast<std::size_t>(query)];
  }
  HeadQueryState& StateOf(std::int64_t query) { return states[static_cast<std::size_t>(query)]; }
  double* SumsOf(std::int64_t query) { return sums.data() + query * sums_stride; }

  // Returns the bytes that a state takes with its sums.
  std::int64_t StateBytes() const {
    return static_cast<std::int64_t>(sizeof(PartialState)) + 8 * sums_stride;
  }

  // Sets `queries` for the head queries `refs`. The other vectors are of no use before Begin().
  void Measure(const PassThreads& threads);
  // Sorts `refs` and `queries` within each head of each task, by the first of the float32_errors,
  // which mostly decide a query's precision path. A kernel scores together only queries of one
  // path, so a tile of several paths takes more time. Leaves causal tasks alone: their neighbouring
  // queries share most rows. Call this between Measure() and Begin(), when there is little to move.
  void SortByErrors();
  // Sets the other vectors, and the collectors of `queries`. Call this before any row is looked at
  // or scanned.
  void Begin();
  // Gives the head queries a new order: the i-th becomes the one that is at index order[i] now.
  void Sort(absl::Span<const std::int64_t> order);
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_HEAD_QUERY_ROUND_H_
