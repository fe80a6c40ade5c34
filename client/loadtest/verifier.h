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

// Largest allowed difference of a component from the float64 answer, over the largest |component|
// of a value in the store, for rows as the store keeps them (see RoundAsKept()). If the largest
// |logit| is over 128, the allowed difference grows in proportion to it.
inline constexpr double kTolerance = 1e-5;

// What the stores hold, and what the run sent to them.
struct VerifiedStores {
  std::uint64_t filled_rows = 0;  // In each store, before the appends.
  v1::ElementType storage = v1::ELEMENT_TYPE_FLOAT32;
  std::uint32_t queries = 1;      // Per lookup.
  std::uint32_t append_rows = 1;  // Per append.
  // Weights per query that the lookups asked for; fewer must come if there are fewer rows. 0: none.
  std::uint64_t weights = 0;
  // The max_error that the lookups asked for, in [0, 1]. Larger differences than kTolerance are
  // allowed up to it. 0: the server's default.
  double max_error = 0;
};

struct Verification {
  int answers = 0;  // Answers that were checked, each by up to two of its queries.
  int wrong = 0;    // Checked answers that were wrong.
  // Answers that were not checked: they saw rows of an append whose answer did not come or was not
  // kept, or Verify() was interrupted.
  int unchecked = 0;
  bool interrupted = false;
  double error_max = 0;     // Largest difference, measured as for kTolerance.
  std::string first_wrong;  // What is wrong with the first wrong answer.
};

// Returns VerifiedStores::weights for lookups with `attention`.
std::uint64_t WeightsAskedFor(const v1::AttentionOptions& attention);

// Computes in float64 what lookups should have answered, from rows that `rows` generates again.
// Each answer is checked over the `row_count` rows that it says it saw. Lookups must use SCALED_DOT
// scores, temperature 1 and one head. Checks row_count, values, log_sum_exp, counted_rows and the
// weights; no weight that was asked for may be missing. Ends early once `interrupted`, which may be
// null, is set.
Verification Verify(const RowSource& rows, const VerifiedStores& stores,
                    const std::vector<Evidence::Answer>& answers,
                    const std::vector<Evidence::Append>& appends,
                    const std::atomic<bool>* interrupted = nullptr);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_VERIFIER_H_
