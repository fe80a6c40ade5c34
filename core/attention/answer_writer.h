#ifndef SOFTLOOKUP_CORE_ATTENTION_ANSWER_WRITER_H_
#define SOFTLOOKUP_CORE_ATTENTION_ANSWER_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/attention/attention_task.h"
#include "core/attention/top_rows.h"
#include "softlookup/partial_answer.h"

namespace softlookup {

// Returns false once the work is cancelled. Work in progress then ends early, and its result is of
// no use.
using Continues = absl::FunctionRef<bool()>;

// Sorts the rows by `rank_by`.
void SortRows(RankBy rank_by, std::vector<CountedRow>& rows, Continues continues);

// The rows that top_k selects for a head query. Their weighted values still have to be added up.
struct SelectedRows {
  PartialState state;            // Of the selected rows, without a sum of values.
  std::vector<CountedRow> rows;  // In the order of RanksBefore.
  // Those of `rows` with a weight other than 0, in the same order. The head query's sum of values
  // is the sum of weight * value over these rows.
  std::vector<WeighedRow> weighed;
};

// Weighs the rows that top_k selects, in float64. `rows` may be in any order.
SelectedRows WeighSelected(const AnswerShape& shape, std::vector<CountedRow> rows,
                           Continues continues);

// Writes the answer to a lookup, head query by head query, from what is found in all of its rows.
//
// Several threads may call WriteSums and ListWeights for different results at the same time.
class AnswerWriter {
 public:
  // The least bytes that a listed row takes on the wire: 8 each for weight and score, and 1 for the
  // position as a varint.
  static constexpr std::int64_t kListedRowBytesMin = 16 + 1;

  // `bytes_max` bounds the bytes that the answer takes on the wire.
  AnswerWriter(const AnswerShape& shape, std::int64_t bytes_max);

  // Makes room for the answer. Call this before WriteSums() and ListWeights().
  void Begin();
  // Adds the least bytes that the listed weights of a head query take to the size of the answer.
  // `counted_rows` may include the rows that top_k leaves out. Not thread-safe.
  void CountListed(std::uint64_t counted_rows);
  // Adds `bytes` to the size of the answer. Not thread-safe.
  void CountBytes(std::int64_t bytes) { bytes_ += bytes; }
  // Returns RESOURCE_EXHAUSTED, with the bytes counted so far, if the answer is sure to take more
  // than bytes_max.
  absl::Status CheckSize() const;
  bool is_too_large() const { return bytes_ > bytes_max_; }

  // Writes the values and statistics of the head query whose index in the answer is `result`. The
  // arguments are those of its PartialAnswer, or SelectedRows::state with the sum that belongs to
  // it.
  void WriteSums(std::size_t result, const PartialState& state, absl::Span<const double> sum,
                 double arithmetic_error);
  // Writes the list of weights of that head query, if weights are listed. The arguments are those
  // of its PartialAnswer, with `rows` in any order. If top_k selects rows, they are those of its
  // SelectedRows.
  void ListWeights(std::size_t result, const PartialState& state, RankedRows rows,
                   Continues continues);

  AttentionAnswer& answer() { return answer_; }

 private:
  const AnswerShape shape_;
  const std::int64_t bytes_max_;
  std::int64_t bytes_;  // The least bytes of the answer, as known so far.
  AttentionAnswer answer_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_ANSWER_WRITER_H_
