#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_PARTIAL_LOOKUP_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_PARTIAL_LOOKUP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/error.h"
#include "softlookup/engine.h"
#include "softlookup/partial_answer.h"
#include "softlookup/row.h"

namespace softlookup {

class AnswerWriter;  // core/attention/answer_writer.h

// A lookup in a store whose rows are spread over ranges of positions. Each range answers for its
// rows with a PartialLookup, all of them as of one revision. MergedLookup makes the lookup's answer
// of them. If top_k selects rows, there is a second phase: each range reads the values of those of
// its rows that are selected in the end (docs/decisions/0029-partial-answers.md).

// The error of a part as of a revision that the range does not keep any more. Also that of a part
// of another store, which has or had the name. Its metadata `revision` and `incarnation` are those
// of the newest snapshot. All ranges have to be asked again as of a newer revision. No client gets
// this error.
inline constexpr ErrorReason kSnapshotGone{absl::StatusCode::kAborted, "SNAPSHOT_GONE"};

// The error of a whole lookup in a store that is cut into ranges, if LookupRequest::refuses_ranges
// is set. No client gets this error.
inline constexpr ErrorReason kStoreHasRanges{absl::StatusCode::kFailedPrecondition,
                                             "STORE_HAS_RANGES"};

// The error of a lookup, or of a part of one, that has to read rows that this server does not keep
// in RAM, because others of its group answer for them.
inline constexpr ErrorReason kRowsNotResident{absl::StatusCode::kUnavailable, "ROWS_NOT_RESIDENT"};

// A row that has an id.
struct PositionedId {
  std::uint64_t position = 0;
  std::uint64_t id = 0;

  friend bool operator==(const PositionedId&, const PositionedId&) = default;
};

// What one range answers to a lookup.
struct PartialLookup {
  // These members are the same for all ranges.
  AnswerShape shape;
  // The positions that the lookup attends to, in all ranges together: those of its filter.
  PositionRange attended;
  std::uint64_t incarnation = 0;  // Of the store, as in MemoryState.
  std::uint64_t revision = 0;
  std::uint64_t row_count = 0;  // Of the whole store.

  // The range. `answers` are over the rows that the lookup attends to at these positions. They are
  // also over the running memory, if these positions include its own.
  PositionRange range;
  std::vector<PartialAnswer> answers;  // [T, num_heads]
  // The ids of the rows that `answers` name, in the order of positions. Empty if no weights are
  // listed, or if top_k selects rows: RowSums then has them.
  std::vector<PositionedId> ids;
};

// What a range is asked in the second phase.
struct RowSumsRequest {
  // [T, num_heads], or empty: rows of the range that top_k has selected, with their weights, in the
  // order of RanksBefore. The running memory is among them, at its position, if it is selected.
  std::vector<std::vector<WeighedRow>> rows;
  // The positions whose ids are wanted, ascending.
  std::vector<std::uint64_t> id_positions;

  // Returns true if there is nothing to ask the range for.
  bool empty() const;
};

// What a range answers in the second phase.
struct RowSums {
  // [T, value_dim]: for each head query, the sum of weight * value over its rows. Empty if
  // RowSumsRequest::rows is.
  std::vector<double> sums;
  // Those of the wanted positions that have an id, in the order of positions.
  std::vector<PositionedId> ids;
};

// Merges the partial answers to one lookup into its answer. The answer differs from that of one
// machine by no more than the order of sums in float64 does, where no rows are left out. The same
// partial answers give the same bits. A single range that has all rows gives the bits of one
// machine.
//
// Not thread-safe.
class MergedLookup {
 public:
  // Merges `parts`, which must be in the order of their ranges. Each range must begin where the one
  // before it ends, and all together must have every row that the lookup attends to. INTERNAL if
  // they do not, if a member that must be the same differs, or if an answer does not fit the shape.
  // `bytes_max` bounds the bytes of the answer on the wire: RESOURCE_EXHAUSTED if it is sure to
  // take more. CANCELLED once continues() returns false.
  static absl::StatusOr<MergedLookup> Merge(std::vector<PartialLookup> parts,
                                            std::int64_t bytes_max,
                                            absl::FunctionRef<bool()> continues);
  ~MergedLookup();
  MergedLookup(MergedLookup&&) noexcept;
  MergedLookup& operator=(MergedLookup&&) noexcept;

  // Returns what to ask each of the parts in the second phase, by part. A part whose request is
  // empty need not be asked. All are empty if top_k selects no rows.
  const std::vector<RowSumsRequest>& requests() const { return requests_; }

  // Returns the answer. `sums` has what the parts have answered to their requests, by part. It may
  // be empty if all requests are, and the element of a part that was not asked is not read.
  // INTERNAL if an element does not fit its request. CANCELLED once continues() returns false. Call
  // this once, last.
  absl::StatusOr<LookupResult> Finish(const std::vector<RowSums>& sums,
                                      absl::FunctionRef<bool()> continues);

 private:
  MergedLookup(PartialLookup facts, std::vector<PositionRange> ranges, std::int64_t bytes_max);

  // Lists weights, and sets requests_ if top_k selects rows.
  absl::Status Rank(absl::FunctionRef<bool()> continues);
  // Returns the request to the part whose range has `position`.
  RowSumsRequest& RequestWith(std::uint64_t position);
  absl::Status CheckSums(const std::vector<RowSums>& sums) const;
  // Sets the ids of the rows that `weights` lists, of `ids`, which are in the order of positions.
  static void AddIds(const std::vector<PositionedId>& ids, QueryWeights& weights);

  // The answer over all ranges. If top_k selects rows, each state is that of the selected rows.
  PartialLookup merged_;
  std::vector<PositionRange> ranges_;     // By part.
  std::vector<RowSumsRequest> requests_;  // By part.
  std::unique_ptr<AnswerWriter> writer_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_PARTIAL_LOOKUP_H_
