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
  std::string color;  // A CSS colour.
  SvgMarker marker = SvgMarker::kNone;
  bool dashed = false;
  std::vector<SvgPoint> points;  // Joined in this order.
};

struct SvgAxis {
  std::string label;
  bool log = false;  // True: every coordinate, `min` and `max` must be > 0.
  // The ends of the axis; points beyond them extend it. Default: the outermost points, rounded
  // outwards to a multiple of TickStep() unless `log`.
  std::optional<double> min;
  std::optional<double> max;  // Must be at least `min`.
};

struct SvgPlot {
  std::string title;
  std::string subtitle;
  SvgAxis x;
  SvgAxis y;
  std::vector<SvgSeries> series;  // The first is drawn on top.
};

// Returns a line plot as an SVG document that needs nothing else: no script, no font, no style
// sheet. It has its own light background, so it is legible on a dark page as well. The same plot
// gives the same bytes. Aborts if there is no point, or if a point's coordinate is not finite, or
// not > 0 on a log axis.
std::string RenderSvg(const SvgPlot& plot);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_PLOT_SVG_PLOT_H_
