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

// Largest difference of a component from the float64 answer, over the largest |component| of that
// answer, for rows as the store keeps them (see RoundAsKept). Logits over 128 in size have more in
// proportion.
inline constexpr double kTolerance = 1e-5;

// What the stores hold and what was asked.
struct VerifiedStores {
  std::uint64_t filled_rows = 0;  // Of each, before the appends.
  v1::ElementType storage = v1::ELEMENT_TYPE_FLOAT32;
  std::uint32_t queries = 1;      // A lookup.
  std::uint32_t append_rows = 1;  // An append.
  // Weights of a query that were asked for, so many as there are rows at most; 0: none.
  std::uint64_t weights = 0;
};

struct Verification {
  int answers = 0;  // Checked, each by up to two of its queries.
  int wrong = 0;    // Of these.
  // Rows are among them of appends whose answer did not come or was not kept, or it was
  // interrupted.
  int unchecked = 0;
  bool interrupted = false;  // Before all were checked.
  double error_max = 0;
  std::string first_wrong;  // What is wrong with it.
};

// For VerifiedStores.
std::uint64_t WeightsAskedFor(const v1::AttentionOptions& attention);

// Computes what lookups should have answered, in float64, with rows made anew: of each answer, over
// the `row_count` rows that it says it saw. Scores are SCALED_DOT, the temperature 1, one head.
// Checks row_count, values, log_sum_exp, counted_rows and the weights, of which none that was asked
// for may be missing. Ends early once `interrupted`, which may be null, is set.
Verification Verify(const RowSource& rows, const VerifiedStores& stores,
                    const std::vector<Evidence::Answer>& answers,
                    const std::vector<Evidence::Append>& appends,
                    const std::atomic<bool>* interrupted = nullptr);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_VERIFIER_H_
