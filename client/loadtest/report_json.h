#ifndef SOFTLOOKUP_CLIENT_LOADTEST_REPORT_JSON_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_REPORT_JSON_H_

#include "client/loadtest/load_report.h"
#include "client/output/json.h"

namespace softlookup::loadtest {

// Returns everything that a load test found. docs/loadtest.md describes the members. Times are in
// milliseconds if a member's name ends in _ms, in seconds if it ends in _s. A time that was not
// measured is null.
output::Json ReportJson(const LoadReport& report);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_REPORT_JSON_H_
