#include "client/output/progress_line.h"

#include <unistd.h>

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/output/figure_text.h"

namespace softlookup::output {
namespace {

constexpr std::chrono::milliseconds kBetweenUpdates{200};

std::string TimeLeftText(double seconds) {
  if (seconds < 100) return absl::StrFormat("%.0f s", std::ceil(seconds));
  if (seconds < 6000) return absl::StrFormat("%.0f min", std::ceil(seconds / 60));
  return absl::StrFormat("%.1f h", seconds / 3600);
}

}  // namespace

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

std::string WorkText(const std::string& unit, std::uint64_t done, std::uint64_t done_now,
                     std::optional<std::uint64_t> total, double seconds) {
  std::string text = CountText(done);
  if (total.has_value()) absl::StrAppend(&text, " of ", CountText(*total));
  absl::StrAppend(&text, " ", NounText(total.value_or(done), unit));
  if (done_now == 0 || !(seconds > 0)) return text;
  const double rate = static_cast<double>(done_now) / seconds;
  absl::StrAppend(&text, ", ", RateText(rate));
  if (total.has_value() && *total >= done) {
    const double left = static_cast<double>(*total - done) / rate;
    absl::StrAppend(&text, ", ", TimeLeftText(left), " left");
  }
  return text;
}

WorkProgress::WorkProgress(std::string unit, std::optional<std::uint64_t> total,
                           std::uint64_t done_before)
    : unit_(std::move(unit)),
      total_(total),
      done_before_(done_before),
      line_(stderr, isatty(STDERR_FILENO) == 1) {}

void WorkProgress::Update(std::uint64_t done_now, const std::string& note) {
  const Clock::time_point now = Clock::now();
  if (now < next_ && note == note_) return;
  next_ = now + kBetweenUpdates;
  note_ = note;
  line_.Show(absl::StrCat(WorkText(unit_, done_before_ + done_now, done_now, total_,
                                   std::chrono::duration<double>(now - begin_).count()),
                          note));
}

}  // namespace softlookup::output
