#ifndef SOFTLOOKUP_CORE_ENGINE_PROJECT_H_
#define SOFTLOOKUP_CORE_ENGINE_PROJECT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/cancellation.h"
#include "core/base/matrix_view.h"

namespace softlookup {

// Multiplies each of the N inputs by `weights`, which is [output_dim, inputs.cols]. Returns the
// products, [N, output_dim], summed in float64 and rounded once.
//
// Errors: NON_FINITE_VALUE, which names `field` and the row, if a product leaves float32's range;
// LIMIT_EXCEEDED if the work takes more than 1e10 multiply-adds, which is some seconds; the error
// of `cancel` if it is cancelled or its deadline passes.
absl::StatusOr<std::vector<float>> Project(absl::string_view field,
                                           const std::vector<float>& weights,
                                           std::int64_t output_dim, const MatrixView& inputs,
                                           const CancelToken& cancel);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_PROJECT_H_
