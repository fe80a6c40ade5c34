#include "client/loadtest/progress_text.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/output/figure_text.h"

namespace softlookup::loadtest {
namespace {

using output::CountText;
using output::RateText;
using output::TimeText;

const char* PhaseName(Progress::Phase phase) {
  switch (phase) {
    case Progress::Phase::kRamp:
      return "ramp";
    case Progress::Phase::kWarmUp:
      return "warm-up";
    case Progress::Phase::kMeasuring:
      return "measuring";
    case Progress::Phase::kDraining:
      return "last answers";
  }
  return "";
}

}  // namespace

std::string ProgressText(const Progress& progress) {
  std::string text = PhaseName(progress.phase);
  if (progress.phase_s > 0) {
    absl::StrAppendFormat(&text, " %.*f/%.3g s", progress.phase_s < 10 ? 1 : 0, progress.elapsed_s,
                          progress.phase_s);
  }
  absl::StrAppend(&text, "  ", RateText(progress.rate));
  if (std::isfinite(progress.p50_s)) {
    absl::StrAppend(&text, "  p50 ", TimeText(progress.p50_s), "  p99 ", TimeText(progress.p99_s));
  }
  absl::StrAppend(&text, "  in flight ", CountText(progress.in_flight), "  errors ",
                  CountText(progress.errors));
  if (progress.rejected > 0) absl::StrAppend(&text, "  rejected ", CountText(progress.rejected));
  if (progress.overflow > 0) absl::StrAppend(&text, "  overflow ", CountText(progress.overflow));
  return text;
}

}  // namespace softlookup::loadtest
