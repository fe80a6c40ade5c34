#ifndef SOFTLOOKUP_CLIENT_PLOT_CHART_H_
#define SOFTLOOKUP_CLIENT_PLOT_CHART_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace softlookup::plot {

struct ChartPoint {
  double x = 0;
  double y = 0;  // NaN or infinite: a gap.
};

// kDots and kRings are marks without a line. kCircles and kSquares are lines with a mark at each
// point. kArea is a line, and fills the area below it.
enum class ChartStyle { kLine, kDashed, kArea, kDots, kRings, kCircles, kSquares };

struct ChartSeries {
  std::string label;  // The series' name in the legend.
  int color = 1;      // In [1, 6]: c1 to c6 of chart_style.cc.
  ChartStyle style = ChartStyle::kLine;
  std::vector<ChartPoint> points;  // A line joins them in this order.
};

struct ChartTick {
  double at = 0;
  std::string text;
};

struct ChartAxis {
  std::string label;  // Names the quantity and its unit.
  // True: a log axis, whose coordinates must be > 0. False: a linear axis that includes 0, and
  // begins there unless a coordinate is negative.
  bool log = false;
  // In ascending order. The axis reaches at least to the last tick. Empty: the chart chooses the
  // ticks.
  std::vector<ChartTick> ticks;
  double reach = 0;  // The axis reaches at least to this coordinate.
};

// A text that shows while the mouse is over the part of the chart from x coordinate `begin` to x
// coordinate `end`.
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
  std::string description;  // What a screen reader says.
  ChartAxis x;
  ChartAxis y;
  std::vector<ChartSeries> series;  // The last one is drawn on top.
  std::optional<ChartBound> bound;
  std::vector<ChartNote> notes;
};

inline constexpr std::size_t kSubtitleCharacters = 105;  // See RenderDocument().

// For RenderChart() and RenderDocument(), at least one point of the chart must not be a gap. The
// same chart gives the same bytes.

// Returns HTML: a legend and an SVG element. The page must include ChartPageStyle().
std::string RenderChart(const Chart& chart);

// Returns an SVG document that needs nothing else: no script, no font, no style sheet. It has its
// own light background, so it is legible on a dark page as well. `subtitle` may be empty. Texts do
// not wrap: there is room for about 65 characters of the title and kSubtitleCharacters of the
// subtitle.
std::string RenderDocument(const Chart& chart, const std::string& title,
                           const std::string& subtitle);

}  // namespace softlookup::plot

#endif  // SOFTLOOKUP_CLIENT_PLOT_CHART_H_
