#include "core/attention/options.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace softlookup {

absl::Status CheckTemperature(const char* field, double temperature) {
  if (temperature >= kTemperatureMin && temperature <= kTemperatureMax) return absl::OkStatus();
  return InvalidOption(field, absl::StrCat("must be in [", kTemperatureMin, ", ", kTemperatureMax,
                                           "], not ", temperature));
}

absl::StatusOr<ResolvedOptions> ResolveOptions(const AttentionOptions& options, Score default_score,
                                               double default_temperature, const Limits& limits) {
  ResolvedOptions resolved;
  resolved.score = options.score == Score::kUnspecified ? default_score : options.score;
  resolved.temperature = options.temperature.value_or(default_temperature);
  SOFTLOOKUP_RETURN_IF_ERROR(CheckTemperature("options.temperature", resolved.temperature));
  if (options.mode != Mode::kUnspecified) resolved.mode = options.mode;
  resolved.top_k = options.top_k;
  if (options.min_score) {
    if (!std::isfinite(*options.min_score)) {
      return InvalidOption("options.min_score",
                           absl::StrCat("must be finite, not ", *options.min_score));
    }
    resolved.min_score = *options.min_score;
  }
  if (options.recency_decay) {
    if (!(*options.recency_decay > 0 && *options.recency_decay <= 1)) {
      return InvalidOption("options.recency_decay",
                           absl::StrCat("must be in (0, 1], not ", *options.recency_decay));
    }
    resolved.ln_decay = std::log(*options.recency_decay);
  }
  resolved.causal = options.causal;
  resolved.causal_offset = options.causal_offset;
  if (options.weights != WeightsMode::kUnspecified) resolved.weights = options.weights;
  if (options.top_weights > limits.top_weights_max) {
    return MakeError(
        reasons::kLimitExceeded,
        absl::StrCat("options.top_weights: ", options.top_weights, " is over the limit of ",
                     limits.top_weights_max),
        {{"field", "options.top_weights"}, {"limit", absl::StrCat(limits.top_weights_max)}});
  }
  if (options.top_weights > 0) resolved.top_weights = options.top_weights;
  if (options.max_error) {
    if (!(*options.max_error >= 0 && *options.max_error <= 1)) {
      return InvalidOption("options.max_error",
                           absl::StrCat("must be in [0, 1], not ", *options.max_error));
    }
    resolved.max_error = *options.max_error;
  }
  return resolved;
}

}  // namespace softlookup
