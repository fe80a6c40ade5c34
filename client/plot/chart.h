#ifndef SOFTLOOKUP_CLIENT_PLOT_CHART_H_
#define SOFTLOOKUP_CLIENT_PLOT_CHART_H_

#include <optional>
#include <string>
#include <vector>

namespace softlookup::loadtest {

struct ChartPoint {
  double x = 0;
  double y = 0;  // NaN or infinite: a gap.
};

enum class ChartStyle { kLine, kDashed, kArea, kDots, kRings };

struct ChartSeries {
  std::string label;  // In the legend.
  int color = 1;      // In [1, 6]: --c1 to --c6 of kChartStyle.
  ChartStyle style = ChartStyle::kLine;
  std::vector<ChartPoint> points;  // Joined in this order.
};

struct ChartTick {
  double at = 0;
  std::string text;
};

struct ChartAxis {
  std::string label;  // With its unit.
  bool log = false;   // True: every coordinate must be > 0. False: the axis begins at 0.
  // In ascending order; the axis reaches at least to the last one. Empty: placed automatically.
  std::vector<ChartTick> ticks;
  double reach = 0;  // A coordinate that the axis reaches at least.
};

// A text that shows while the mouse is over the part of the chart from x = `begin` to x = `end`.
struct ChartNote {
  double begin = 0;
  double end = 0;
  std::string text;
};

// A horizontal line at a bound on y, such as an objective.
struct ChartBound {
  double y = 0;
  std::string label;
};

struct Chart {
  std::string description;  // For people who cannot see the chart.
  ChartAxis x;
  ChartAxis y;
  std::vector<ChartSeries> series;  // The last one is on top.
  std::optional<ChartBound> bound;
  std::vector<ChartNote> notes;
};

// Returns the HTML of a legend and an SVG element. Their colours come from kChartStyle, which the
// page must include; the page itself must define the colours --faint and --card. At least one point
// of the chart must not be a gap.
std::string RenderChart(const Chart& chart);

extern const char kChartStyle[];

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_PLOT_CHART_H_
