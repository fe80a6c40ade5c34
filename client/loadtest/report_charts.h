#ifndef SOFTLOOKUP_CLIENT_LOADTEST_REPORT_CHARTS_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_REPORT_CHARTS_H_

#include "client/loadtest/load_report.h"
#include "client/plot/chart.h"

namespace softlookup::loadtest {

// The charts of a report. Where nothing was measured they have no points.

// Latency of each kind of calls by percentile; a step to the right is a nine more.
Chart PercentileChart(const Tally& tally);

// Median and 99th percentile.
Chart LatencyOverTime(const LoadResult& result);

Chart ThroughputOverTime(const LoadResult& result);

// No series if every call was sent and ended OK.
Chart FailuresOverTime(const LoadResult& result);

// The 99th percentile at each rate that was tried.
Chart SearchChart(const LoadReport& report);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_REPORT_CHARTS_H_
