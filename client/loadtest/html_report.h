#ifndef SOFTLOOKUP_CLIENT_LOADTEST_HTML_REPORT_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_HTML_REPORT_H_

#include <string>

#include "client/loadtest/load_report.h"

namespace softlookup::loadtest {

// Returns what a load test found, as one HTML page. The page needs nothing else: no script, no
// font, no network. Its colours are light or dark, as the reader's system prefers.
std::string HtmlReport(const LoadReport& report);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_HTML_REPORT_H_
