#ifndef SOFTLOOKUP_CLIENT_LOADTEST_SUMMARY_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_SUMMARY_H_

#include <ostream>

#include "client/loadtest/find_max.h"
#include "client/loadtest/load_report.h"

namespace softlookup::loadtest {

// Prints what a load test found, for a terminal.
void PrintSummary(const LoadReport& report, std::ostream* out);

// PrintStep() prints a line for a step of the search. PrintStepTitle() prints the title of these
// lines, and must be called before the first step.
void PrintStepTitle(std::ostream* out);
void PrintStep(const FindMaxStep& step, std::ostream* out);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_SUMMARY_H_
