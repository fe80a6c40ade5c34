#ifndef SOFTLOOKUP_CLIENT_PLOT_CHART_H_
#define SOFTLOOKUP_CLIENT_PLOT_CHART_H_

#include <optional>
#include <string>
#include <vector>

namespace softlookup::loadtest {

struct ChartPoint {
  double x = 0;
  double y = 0;  // NaN: a gap.
};

enum class ChartStyle { kLine, kDashed, kArea, kDots, kRings };

struct ChartSeries {
  std::string label;  // In the legend.
  int color = 1;      // In [1, 6]; the page's style sheet has them.
  ChartStyle style = ChartStyle::kLine;
  std::vector<ChartPoint> points;  // Joined in this order.
};

struct ChartTick {
  double at = 0;
  std::string text;
};

struct ChartAxis {
  std::string label;             // With its unit.
  bool log = false;              // Then every coordinate is > 0. Otherwise the axis begins at 0.
  std::vector<ChartTick> ticks;  // Default: where they fit. The axis reaches to the last one.
  double reach = 0;              // The axis reaches at least to it.
};

// What shows when the mouse is over a part of the x axis.
struct ChartNote {
  double begin = 0;
  double end = 0;
  std::string text;
};

// A line that is not to be crossed.
struct ChartBound {
  double y = 0;
  std::string label;
};

struct Chart {
  std::string description;  // For who cannot see it.
  ChartAxis x;
  ChartAxis y;
  std::vector<ChartSeries> series;  // The last one is on top.
  std::optional<ChartBound> bound;
  std::vector<ChartNote> notes;
};

// A legend and an SVG element for a page whose style sheet, kChartStyle, gives both their colours.
// At least one point in all is not a gap.
std::string RenderChart(const Chart& chart);

extern const char kChartStyle[];

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_PLOT_CHART_H_
