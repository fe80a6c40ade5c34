#ifndef SOFTLOOKUP_CLIENT_LOADTEST_PROGRESS_LINE_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_PROGRESS_LINE_H_

#include <cstdio>
#include <string>

#include "client/loadtest/run_load.h"

namespace softlookup::loadtest {

// Returns a text such as
// "measuring 12/30 s  4,998/s  p50 1.23 ms  p99 4.56 ms  in flight 12  errors 0".
std::string ProgressText(const Progress& progress);

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

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_PROGRESS_LINE_H_
