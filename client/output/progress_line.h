#ifndef SOFTLOOKUP_CLIENT_OUTPUT_PROGRESS_LINE_H_
#define SOFTLOOKUP_CLIENT_OUTPUT_PROGRESS_LINE_H_

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace softlookup::output {

// A line of text that each new text overwrites on a terminal. Elsewhere each text is a line of its
// own. The destructor clears the line from the terminal. Not thread-safe.
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

// Returns how far a work is, such as "127,552 of 341,479 rows, 4,998/s, 43 s left"; without a
// total, "127,552 rows, 4,998/s". `done` includes what was done before the last `seconds`, in which
// `done_now` of them were done.
std::string WorkText(const std::string& unit, std::uint64_t done, std::uint64_t done_now,
                     std::optional<std::uint64_t> total, double seconds);

// A ProgressLine on standard error, if that is a terminal, that says how far a work is. It changes
// at most five times a second. Not thread-safe.
class WorkProgress {
 public:
  // `unit` is the plural of what is counted. `done_before` of them are done already.
  WorkProgress(std::string unit, std::optional<std::uint64_t> total, std::uint64_t done_before = 0);

  // `done_now` are done since the object was made. `note` follows the figures; a new one is shown
  // at once.
  void Update(std::uint64_t done_now, const std::string& note = "");
  void Clear() { line_.Clear(); }

 private:
  using Clock = std::chrono::steady_clock;

  const std::string unit_;
  const std::optional<std::uint64_t> total_;
  const std::uint64_t done_before_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point next_ = begin_;
  std::string note_;
  ProgressLine line_;
};

}  // namespace softlookup::output

#endif  // SOFTLOOKUP_CLIENT_OUTPUT_PROGRESS_LINE_H_
