#ifndef SOFTLOOKUP_CLIENT_LOADTEST_KEPT_ROWS_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_KEPT_ROWS_H_

#include "softlookup/float_matrix.h"
#include "softlookup/v1/matrix.pb.h"

namespace softlookup::loadtest {

// Rounds each row of `rows`, which are keys or values, as a store of type `storage` does when it
// receives the row. BFLOAT16: to nearest, ties to even. INT8: to a multiple of the row's largest
// |component| / 127. FLOAT32: not at all. A lookup's answer is computed over the rounded rows, so a
// check must use them, too.
void RoundAsKept(v1::ElementType storage, FloatMatrix* rows);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_KEPT_ROWS_H_
