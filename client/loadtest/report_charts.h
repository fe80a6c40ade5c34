#ifndef SOFTLOOKUP_CLIENT_LOADTEST_REPORT_CHARTS_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_REPORT_CHARTS_H_

#include "client/loadtest/load_report.h"
#include "client/plot/chart.h"

namespace softlookup::loadtest {

// The functions below return the charts of a report. A chart has no points if nothing was measured.

// The latency of each kind of calls by percentile. The x axis counts nines: 90 %, 99 % and 99.9 %
// are at equal distances.
plot::Chart PercentileChart(const Tally& tally);

// The median and the 99th percentile of latency over time.
plot::Chart LatencyOverTime(const LoadResult& result);

// The rate of calls that ended OK. In an open loop, also LoadOptions::rate.
plot::Chart ThroughputOverTime(const LoadResult& result);

// The rates of errors, rejections and calls that were not sent. Has no series if every call was
// sent and ended OK.
plot::Chart FailuresOverTime(const LoadResult& result);

// The 99th percentile of latency at each rate that the search tried.
plot::Chart SearchChart(const LoadReport& report);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_REPORT_CHARTS_H_
