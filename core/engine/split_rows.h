#ifndef SOFTLOOKUP_CORE_ENGINE_SPLIT_ROWS_H_
#define SOFTLOOKUP_CORE_ENGINE_SPLIT_ROWS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/storage/records.h"

namespace softlookup {

// Splits the rows of a kRows record into parts, which together have the same rows in the same
// order. Calls visit(first_position, part) for one part after the other, until that returns an
// error, and returns the error. `first_position` is the position of the first row of `rows`, none
// of which may be in a compacted block. `rows_max`, the most rows that a part may have, must be a
// positive multiple of kernels::kPanelRows: parts end between panels. A record without rows has no
// parts.
absl::Status SplitRows(
    std::uint64_t first_position, const RowsRecord& rows, std::uint64_t rows_max,
    absl::FunctionRef<absl::Status(std::uint64_t first_position, const RowsRecord& part)> visit);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_SPLIT_ROWS_H_
