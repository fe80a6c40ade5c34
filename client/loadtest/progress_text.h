#ifndef SOFTLOOKUP_CLIENT_LOADTEST_PROGRESS_TEXT_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_PROGRESS_TEXT_H_

#include <string>

#include "client/loadtest/run_load.h"

namespace softlookup::loadtest {

// Returns a text such as
// "measuring 12/30 s  4,998/s  p50 1.23 ms  p99 4.56 ms  in flight 12  errors 0".
std::string ProgressText(const Progress& progress);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_PROGRESS_TEXT_H_
