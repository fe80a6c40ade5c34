#ifndef SOFTLOOKUP_TESTS_TESTING_GOLDEN_H_
#define SOFTLOOKUP_TESTS_TESTING_GOLDEN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "softlookup/attention.h"

namespace softlookup::testing {

// One case of tests/golden/cases.json: what tests/golden/oracle.py answers in float64.
struct GoldenLookup {
  std::string name;
  std::int64_t query_count = 0;
  std::int64_t row_count = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t num_heads = 1;
  std::vector<float> queries;
  std::vector<float> keys;
  std::vector<float> values;
  AttentionOptions options;   // Score unspecified: SCALED_DOT.
  std::vector<bool> allowed;  // Empty: all rows.

  std::vector<double> expected_values;
  std::vector<QueryStats> expected_stats;             // Query-major, one a head.
  std::vector<std::vector<double>> expected_weights;  // Likewise, one a row.
};

struct GoldenMemory {
  std::string kind;
  std::int64_t row_count = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  std::uint64_t begin = 0;
  double decay = 0;         // 0 where the kind has none.
  std::vector<float> gate;  // Empty where the kind has none.
  std::vector<float> keys;
  std::vector<float> values;
  std::vector<double> expected_key;
  std::vector<double> expected_value;
  double expected_weight = 0;
};

// Read from the file that the macro SOFTLOOKUP_GOLDEN_CASES names; aborts if it is not there.
std::vector<GoldenLookup> ReadGoldenLookups();
std::vector<GoldenMemory> ReadGoldenMemories();

// Largest |actual - expected| over the largest |expected|; with no larger one, over 1e-30.
double RelativeError(const std::vector<float>& actual, const std::vector<double>& expected);
double RelativeError(const std::vector<double>& actual, const std::vector<double>& expected);

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_GOLDEN_H_
