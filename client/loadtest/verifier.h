#ifndef SOFTLOOKUP_CLIENT_LOADTEST_VERIFIER_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_VERIFIER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/loadtest/evidence.h"
#include "client/loadtest/row_source.h"
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
};

struct Verification {
  int answers = 0;           // Checked, each by up to two of its queries.
  int wrong = 0;             // Of these.
  int unchecked = 0;         // Rows are among them of appends whose answer did not come.
  bool interrupted = false;  // Before all were checked.
  double error_max = 0;
  std::string first_wrong;  // What is wrong with it.
};

// Computes what lookups should have answered, in float64, with rows made anew: of each answer, over
// the `row_count` rows that it says it saw. Scores are SCALED_DOT, the temperature 1, one head.
// Checks values, log_sum_exp, counted_rows and, where they are listed, the weights.
Verification Verify(const RowSource& rows, const VerifiedStores& stores,
                    const std::vector<Evidence::Answer>& answers,
                    const std::vector<Evidence::Append>& appends);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_VERIFIER_H_
