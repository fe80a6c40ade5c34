#ifndef SOFTLOOKUP_CLIENT_OUTPUT_PROGRESS_LINE_H_
#define SOFTLOOKUP_CLIENT_OUTPUT_PROGRESS_LINE_H_

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace softlookup::output {

// A line that shows a text. On a terminal, each new text overwrites the one before. Elsewhere, each
// text is a line of its own. The destructor clears the line from the terminal. Not thread-safe.
class ProgressLine {
 public:
  // Writes to `file`, or nothing if `shown` is false.
  ProgressLine(std::FILE* file, bool shown);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // `text` must fit on a line of the terminal.
  void Show(const std::string& text);
  // Clears the line from the terminal, for other output.
  void Clear();

 private:
  std::FILE* const file_;
  const bool shown_;
  const bool terminal_;
};

// Describes the progress of some work, such as "127,552 of 341,479 rows, 4,998/s, 43 s left", or
// without a total, "127,552 rows, 4,998/s". `unit` is the singular of what is counted. `done` units
// are done. Of these, `done_now` were done in the last `seconds`, and the others before. The rate
// is `done_now` / `seconds`.
std::string WorkText(const std::string& unit, std::uint64_t done, std::uint64_t done_now,
                     std::optional<std::uint64_t> total, double seconds);

// Shows the progress of some work on a ProgressLine on standard error. Shows nothing if standard
// error is no terminal. The line changes at most five times a second. Not thread-safe.
class WorkProgress {
 public:
  // `unit` is the singular of what is counted. `done_before` units are done already.
  WorkProgress(std::string unit, std::optional<std::uint64_t> total, std::uint64_t done_before = 0);

  // `done_now` units were done since this object was made. `note` follows the figures. If the note
  // differs from the last one, the line changes at once.
  void Update(std::uint64_t done_now, const std::string& note = "");
  void Clear() { line_.Clear(); }

 private:
  using Clock = std::chrono::steady_clock;

  const std::string unit_;
  const std::optional<std::uint64_t> total_;
  const std::uint64_t done_before_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point next_ = begin_;  // Until this time, only a new note changes the line.
  std::string note_;
  ProgressLine line_;
};

}  // namespace softlookup::output

#endif  // SOFTLOOKUP_CLIENT_OUTPUT_PROGRESS_LINE_H_
