// Matrices as the wire has them.
#ifndef SOFTLOOKUP_TESTS_EXACTNESS_WIRE_MATRIX_H_
#define SOFTLOOKUP_TESTS_EXACTNESS_WIRE_MATRIX_H_

#include <cstdint>
#include <vector>

#include "softlookup/v1/soft_lookup.pb.h"
#include "tests/testing/random.h"

namespace softlookup::exactness {

// A matrix in one of the forms that the wire has. Every form holds floats exactly.
v1::Matrix MatrixOf(testing::Draw& draw, const std::vector<float>& floats, std::int64_t cols);
std::vector<float> FloatsOf(const v1::Matrix& matrix);

}  // namespace softlookup::exactness

#endif  // SOFTLOOKUP_TESTS_EXACTNESS_WIRE_MATRIX_H_
