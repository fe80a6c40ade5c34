#ifndef SOFTLOOKUP_CORE_ATTENTION_ROW_VALUES_H_
#define SOFTLOOKUP_CORE_ATTENTION_ROW_VALUES_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/attention/attention_task.h"
#include "softlookup/partial_answer.h"

namespace softlookup {

// Reads the values of single rows that a task attends to. Thread-safe.
class RowValues {
 public:
  // `task` must outlive this object.
  explicit RowValues(const AttentionTask& task)
      : task_(task), head_value_dim_(task.value_dim / task.num_heads) {}

  // Returns true if the task attends to a row at `position`, or if its running memory has that
  // position.
  bool Has(std::uint64_t position) const;
  // Returns the sum of weight * value over `rows`, added up in their order. `value` is the head's
  // part of a row's value. Has() must be true for each row. Stops early once continues() returns
  // false; the sum is then of no use.
  std::vector<double> SumOf(std::int64_t head, absl::Span<const WeighedRow> rows,
                            absl::FunctionRef<bool()> continues) const;

 private:
  // Returns true if the row at `position` is the running memory.
  bool IsMemory(std::uint64_t position) const {
    return task_.memory && task_.memory->position == position &&
           !(position >= task_.begin && position < task_.end);
  }
  // Returns the block whose positions include `position`, or null.
  const PositionedBlock* BlockWith(std::uint64_t position) const;
  // Adds `weight` times the value to `sum`. `buffer` is scratch space of head_value_dim_ floats.
  void Add(std::int64_t head, const WeighedRow& row, std::vector<double>& sum,
           std::vector<float>& buffer) const;

  const AttentionTask& task_;
  const std::int64_t head_value_dim_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_ROW_VALUES_H_
