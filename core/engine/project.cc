#include "core/engine/project.h"

#include <array>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace softlookup {
namespace {

// Most multiply-adds of one call, some seconds of one thread.
constexpr double kMultiplyAddsMax = 1e10;

// Returns the dot product. Keeps eight sums side by side and adds them up in a fixed order.
double Dot(const float* a, const float* b, std::int64_t count) {
  std::array<double, 8> sums = {};
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int lane = 0; lane < 8; ++lane) {
      sums[lane] += static_cast<double>(a[i + lane]) * b[i + lane];
    }
  }
  double sum = 0;
  for (; i < count; ++i) sum += static_cast<double>(a[i]) * b[i];
  for (const double lane : sums) sum += lane;
  return sum;
}

}  // namespace

absl::StatusOr<std::vector<float>> Project(absl::string_view field,
                                           const std::vector<float>& weights,
                                           std::int64_t output_dim, const MatrixView& inputs,
                                           const CancelToken& cancel) {
  const double cost = static_cast<double>(weights.size()) * static_cast<double>(inputs.rows);
  if (cost > kMultiplyAddsMax) {
    return MakeError(reasons::kLimitExceeded,
                     absl::StrCat(field, ": projecting ", inputs.rows, " rows takes ", cost,
                                  " multiply-adds; the limit is ", kMultiplyAddsMax),
                     {{"field", std::string(field)}, {"limit", absl::StrCat(kMultiplyAddsMax)}});
  }
  // At most about a millisecond passes between two checks of the token.
  constexpr std::int64_t kOutputsBetweenChecks = 64;
  std::vector<float> outputs(inputs.rows * output_dim);
  for (std::int64_t row = 0; row < inputs.rows; ++row) {
    for (std::int64_t i = 0; i < output_dim; ++i) {
      if (i % kOutputsBetweenChecks == 0) SOFTLOOKUP_RETURN_IF_ERROR(cancel.Check());
      const float output =
          static_cast<float>(Dot(weights.data() + i * inputs.cols, inputs.row(row), inputs.cols));
      if (!std::isfinite(output)) {
        return MakeError(reasons::kNonFiniteValue,
                         absl::StrCat(field, ": row ", row, " leaves the range of float32"),
                         {{"field", std::string(field)}, {"row", absl::StrCat(row)}});
      }
      outputs[row * output_dim + i] = output;
    }
  }
  return outputs;
}

}  // namespace softlookup
