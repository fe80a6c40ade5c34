#ifndef SOFTLOOKUP_CLIENT_LOADTEST_HTML_REPORT_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_HTML_REPORT_H_

#include <string>

#include "client/loadtest/load_report.h"

namespace softlookup::loadtest {

// What a load test has found as one page that needs nothing else: no script, no font, no network.
// It is light or dark as its reader's system is.
std::string HtmlReport(const LoadReport& report);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_HTML_REPORT_H_
