#ifndef SOFTLOOKUP_CLIENT_LOADTEST_VERIFIER_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_VERIFIER_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "client/loadtest/evidence.h"
#include "client/loadtest/row_source.h"
#include "softlookup/v1/attention.pb.h"
#include "softlookup/v1/matrix.pb.h"

namespace softlookup::loadtest {

// Largest allowed difference of an answer's component from the float64 answer, as a fraction of the
// largest |component| of a value in the store. The float64 answer is computed over the rows as the
// store rounds them: see RoundAsKept(). If the largest |logit| is over 128, the allowed difference
// grows in proportion to that logit.
inline constexpr double kTolerance = 1e-5;

// What the stores held before the run, and what requests the run sent to them.
struct VerifiedStores {
  std::uint64_t filled_rows = 0;  // Rows in each store before the run's appends.
  v1::ElementType storage = v1::ELEMENT_TYPE_FLOAT32;
  std::uint32_t queries = 1;      // Per lookup.
  std::uint32_t append_rows = 1;  // Per append.
  // Weights per query that the lookups asked for. An answer must list this many, or all rows if
  // there are fewer. 0: the lookups asked for none.
  std::uint64_t weights = 0;
  // The max_error that the lookups asked for, in [0, 1]. If it is larger than kTolerance, it takes
  // the place of kTolerance. 0: the server's default.
  double max_error = 0;
};

struct Verification {
  int answers = 0;  // Answers that were checked, each by up to two of its queries.
  int wrong = 0;    // Checked answers that were wrong.
  // Answers that were not checked, because Verify() was interrupted, or because they saw rows of
  // unknown content. The rows of an append are unknown if the answer to the append did not come,
  // did not tell their position, or was not kept.
  int unchecked = 0;
  bool interrupted = false;
  double error_max = 0;     // Largest difference, in the unit of kTolerance.
  std::string first_wrong;  // What is wrong with the first wrong answer. Empty if none is wrong.
};

// Returns VerifiedStores::weights for lookups with `attention`.
std::uint64_t WeightsAskedFor(const v1::AttentionOptions& attention);

// Computes in float64 what lookups should have answered, from rows that `rows` generates again.
// Compares values, log_sum_exp, counted_rows and weights with the answers. Each answer is checked
// over the first `row_count` rows, where `row_count` is the answer's own. An answer is wrong if its
// `row_count` is below Evidence::Answer::rows_min, or if it lacks weights that the lookup asked
// for. The lookups must use SCALED_DOT scores, temperature 1 and one head. Ends early once
// `interrupted`, which may be null, is set.
Verification Verify(const RowSource& rows, const VerifiedStores& stores,
                    const std::vector<Evidence::Answer>& answers,
                    const std::vector<Evidence::Append>& appends,
                    const std::atomic<bool>* interrupted = nullptr);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_VERIFIER_H_
