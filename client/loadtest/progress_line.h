#ifndef SOFTLOOKUP_CLIENT_LOADTEST_PROGRESS_LINE_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_PROGRESS_LINE_H_

#include <cstdio>
#include <string>

#include "client/loadtest/run_load.h"

namespace softlookup::loadtest {

// "measuring 12/30 s  4,998/s  p50 1.23 ms  p99 4.56 ms  in flight 12  errors 0".
std::string ProgressText(const Progress& progress);

// A line of text that is written over and over on a terminal; elsewhere each is a line of its own.
// Gone from the terminal with the object. For one thread.
class ProgressLine {
 public:
  ProgressLine(std::FILE* file, bool shown);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // `text` is at most as long as a line.
  void Show(const std::string& text);
  // Takes it away, for other output.
  void Clear();

 private:
  std::FILE* const file_;
  const bool shown_;
  const bool terminal_;
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_PROGRESS_LINE_H_
