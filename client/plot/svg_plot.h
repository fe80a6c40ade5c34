#ifndef SOFTLOOKUP_CLIENT_PLOT_SVG_PLOT_H_
#define SOFTLOOKUP_CLIENT_PLOT_SVG_PLOT_H_

#include <optional>
#include <string>
#include <vector>

namespace softlookup::tool {

struct SvgPoint {
  double x = 0;
  double y = 0;
};

enum class SvgMarker { kNone, kCircle, kSquare };

struct SvgSeries {
  std::string label;  // In the legend.
  std::string color;  // As in CSS.
  SvgMarker marker = SvgMarker::kNone;
  bool dashed = false;
  std::vector<SvgPoint> points;  // Joined in this order.
};

struct SvgAxis {
  std::string label;
  bool log = false;  // Then every coordinate is > 0.
  // Where the axis ends. Default: at the points, rounded outwards to a tick unless `log`.
  std::optional<double> min;
  std::optional<double> max;  // At least `min`.
};

struct SvgPlot {
  std::string title;
  std::string subtitle;
  SvgAxis x;
  SvgAxis y;
  std::vector<SvgSeries> series;  // The first is drawn on top.
};

// A line plot as a document that needs nothing else: no script, no font, no style sheet. It has its
// own light background, so it reads on a dark page as well. Coordinates are finite, at least one
// point in all; aborts otherwise. The same plot gives the same bytes.
std::string RenderSvg(const SvgPlot& plot);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_PLOT_SVG_PLOT_H_
