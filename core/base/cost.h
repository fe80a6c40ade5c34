#ifndef SOFTLOOKUP_CORE_BASE_COST_H_
#define SOFTLOOKUP_CORE_BASE_COST_H_

#include <cstdint>

namespace softlookup {

// Estimates of work, in multiply-adds of a scan. The scheduler adds and compares these costs. It
// measures how many multiply-adds the machine does per second. All formulas for costs are in this
// file.

// Work of at most this cost may run on the calling thread. Such work takes at most some 50 us,
// which is less than the time to wake another thread.
inline constexpr double kInlineCostMax = 1e6;

struct AttentionSize {
  std::int64_t query_count = 0;
  std::int64_t num_heads = 1;
  std::uint64_t row_count = 0;
  std::int64_t dims = 0;  // key_dim + value_dim, total over heads.
  // Whether each row is compared with the best rows so far, for top_k or for listed weights.
  bool ranks_rows = false;
};

// Returns the sum of three costs: the multiply-adds, a fixed cost for each head query, and a cost
// for each logit.
inline double AttentionCost(const AttentionSize& size) {
  const double rows = static_cast<double>(size.row_count);
  const double queries = static_cast<double>(size.query_count);
  const double heads = queries * static_cast<double>(size.num_heads);
  return queries * rows * static_cast<double>(size.dims) + heads * 1000 +
         heads * rows * (size.ranks_rows ? 60 : 10);
}

// Returns the cost of reading rows once. `cost` is the cost of `query_count` queries over these
// rows. Reading the rows takes as long as computing 8 queries over them.
inline double ReadingCost(double cost, std::int64_t query_count) {
  return 8 * cost / static_cast<double>(query_count > 1 ? query_count : 1);
}

// Returns the cost of multiplying `input_count` inputs by a matrix of `weight_count` weights. One
// multiply-add in float64 counts as 4.
inline double ProjectionCost(std::int64_t weight_count, std::int64_t input_count) {
  return 4 * static_cast<double>(weight_count) * static_cast<double>(input_count);
}

// Returns the cost of testing the ids or labels of `row_count` rows against a filter of `tag_count`
// ids and labels.
inline double SelectionCost(std::uint64_t tag_count, std::uint64_t row_count) {
  return 200 * (static_cast<double>(tag_count) + static_cast<double>(row_count));
}

// Returns the cost of visiting each component of `row_count` rows, to pack the rows or to read a
// memory.
inline double PassOverRowsCost(std::uint64_t row_count, std::int64_t dims) {
  return 20 * static_cast<double>(row_count) * static_cast<double>(dims);
}

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_COST_H_
