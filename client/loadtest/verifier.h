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

// Largest allowed difference of a component from the float64 answer, divided by the largest
// |component| of a value in the store. The float64 answer is over rows as the store keeps them: see
// RoundAsKept(). If the largest |logit| is over 128, the allowed difference grows in proportion to
// that logit.
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
  // The max_error that the lookups asked for, in [0, 1]. If it is larger than kTolerance, it is the
  // allowed difference instead. 0: the server's default.
  double max_error = 0;
};

struct Verification {
  int answers = 0;  // Answers that were checked, each by up to two of its queries.
  int wrong = 0;    // Checked answers that were wrong.
  // Answers that were not checked. They saw rows of an append whose answer did not come, did not
  // tell the rows' position, or was not kept. Or Verify() was interrupted.
  int unchecked = 0;
  bool interrupted = false;
  double error_max = 0;     // Largest difference, measured as for kTolerance.
  std::string first_wrong;  // What is wrong with the first wrong answer. Empty if none is wrong.
};

// Returns VerifiedStores::weights for lookups with `attention`.
std::uint64_t WeightsAskedFor(const v1::AttentionOptions& attention);

// Computes in float64 what lookups should have answered, from rows that `rows` generates again.
// Each answer is checked over the first `row_count` rows, where `row_count` is that of the answer.
// It must not be below Evidence::Answer::rows_min. Also checks values, log_sum_exp, counted_rows
// and the weights, none of which may be missing if the lookup asked for it. The lookups must use
// SCALED_DOT scores, temperature 1 and one head. Ends early once `interrupted`, which may be null,
// is set.
Verification Verify(const RowSource& rows, const VerifiedStores& stores,
                    const std::vector<Evidence::Answer>& answers,
                    const std::vector<Evidence::Append>& appends,
                    const std::atomic<bool>* interrupted = nullptr);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_VERIFIER_H_
