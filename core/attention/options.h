#ifndef SOFTLOOKUP_CORE_ATTENTION_OPTIONS_H_
#define SOFTLOOKUP_CORE_ATTENTION_OPTIONS_H_

#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "core/base/limits.h"
#include "softlookup/attention.h"

namespace softlookup {

// AttentionOptions with every default filled in and every value checked.
struct ResolvedOptions {
  Score score = Score::kScaledDot;
  double temperature = 1;
  Mode mode = Mode::kSoft;
  std::uint64_t top_k = 0;  // 0: all rows.
  double min_score = -std::numeric_limits<double>::infinity();
  double ln_decay = 0;  // ln(recency_decay). 0: no decay.
  bool causal = false;
  std::uint64_t causal_offset = 0;
  WeightsMode weights = WeightsMode::kNone;
  std::int64_t top_weights = kTopWeightsDefault;
  double max_error = 0;  // A value below kErrorBoundDefault counts as kErrorBoundDefault.
};

// Returns the options with the defaults filled in. If a value is out of its range, returns
// INVALID_ARGUMENT, which names the field as `options.…`.
absl::StatusOr<ResolvedOptions> ResolveOptions(const AttentionOptions& options, Score default_score,
                                               double default_temperature, const Limits& limits);

// Returns OK if `temperature` is in its range, else INVALID_ARGUMENT about `field`.
absl::Status CheckTemperature(const char* field, double temperature);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_OPTIONS_H_
