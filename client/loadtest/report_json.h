#ifndef SOFTLOOKUP_CLIENT_LOADTEST_REPORT_JSON_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_REPORT_JSON_H_

#include "client/loadtest/load_report.h"
#include "client/output/json.h"

namespace softlookup::loadtest {

// All that a load test has found. docs/loadtest.md has the members. Times are in milliseconds where
// a name ends in _ms, in seconds where it ends in _s; a figure that there is not is null.
tool::Json ReportJson(const LoadReport& report);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_REPORT_JSON_H_
