#ifndef SOFTLOOKUP_CLIENT_LOADTEST_REPORT_CHARTS_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_REPORT_CHARTS_H_

#include "client/loadtest/load_report.h"
#include "client/plot/chart.h"

namespace softlookup::loadtest {

// These return the charts of a report. A chart has no points if nothing was measured.

// The latency of each kind of calls by percentile. The x axis counts nines: 90 %, 99 %, 99.9 %.
plot::Chart PercentileChart(const Tally& tally);

// The median and the 99th percentile.
plot::Chart LatencyOverTime(const LoadResult& result);

plot::Chart ThroughputOverTime(const LoadResult& result);

// Has no series if every call was sent and ended OK.
plot::Chart FailuresOverTime(const LoadResult& result);

// The 99th percentile at each rate that the search tried.
plot::Chart SearchChart(const LoadReport& report);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_REPORT_CHARTS_H_
