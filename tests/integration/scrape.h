#ifndef SOFTLOOKUP_TESTS_INTEGRATION_SCRAPE_H_
#define SOFTLOOKUP_TESTS_INTEGRATION_SCRAPE_H_

#include <string>

#include "tests/testing/metrics_text.h"
#include "tests/testing/server_process.h"

namespace softlookup::testing {

// Reads /metrics of `server`. The test fails, and nothing is returned, if it is not a strict page
// of Prometheus' text format.
MetricsText Scrape(const ServerProcess& server);

// Reads a sample of /metrics; 0 if it is not there.
double MetricOf(const ServerProcess& server, const std::string& sample);

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_INTEGRATION_SCRAPE_H_
