#include "client/loadtest/progress_line.h"

#include <unistd.h>

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

ProgressLine::ProgressLine(std::FILE* file, bool shown)
    : file_(file), shown_(shown), terminal_(isatty(fileno(file)) == 1) {}

ProgressLine::~ProgressLine() { Clear(); }

void ProgressLine::Show(const std::string& text) {
  if (!shown_) return;
  std::fprintf(file_, terminal_ ? "\r%s\x1b[K" : "%s\n", text.c_str());
  std::fflush(file_);
}

void ProgressLine::Clear() {
  if (!shown_ || !terminal_) return;
  std::fputs("\r\x1b[K", file_);
  std::fflush(file_);
}

}  // namespace softlookup::loadtest
