#ifndef SOFTLOOKUP_CORE_ATTENTION_REFERENCE_H_
#define SOFTLOOKUP_CORE_ATTENTION_REFERENCE_H_

#include <cstdint>
#include <vector>

#include "core/attention/options.h"
#include "core/base/matrix_view.h"

namespace softlookup {

// A task for plain float64 attention. ReferenceAttend defines the right answer: tests compare every
// faster path with it.
struct ReferenceTask {
  ResolvedOptions options;
  MatrixView queries;  // [T, key_dim]
  MatrixView keys;     // [N, key_dim]; row j has position j.
  MatrixView values;   // [N, value_dim]
  std::int64_t num_heads = 1;
  // Row j may count if allowed[j]. Empty: all rows may count.
  std::vector<bool> allowed;
  std::uint64_t age_end = 0;  // The age of row j is age_end - 1 - j.
};

struct ReferenceAnswer {
  std::vector<double> values;     // [T, value_dim]
  std::vector<QueryStats> stats;  // [T, num_heads]
  std::vector<std::vector<double>>
      weights;  // [T, num_heads] of N each. 0 for a row that does not count.
  std::vector<std::vector<double>> scores;  // [T, num_heads] of N each.
};

ReferenceAnswer ReferenceAttend(const ReferenceTask& task);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_REFERENCE_H_
