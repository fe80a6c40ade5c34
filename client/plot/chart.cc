#include "client/plot/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/output/figure_text.h"
#include "client/output/xml_text.h"
#include "client/plot/axis_ticks.h"
#include "client/plot/chart_style.h"
#include "client/plot/scale.h"

namespace softlookup::plot {
namespace {

using output::CountText;
using output::XmlText;

// Positions and lengths in units of the view box, which are about pixels. The axes span the
// rectangle from `left` to `right` and from `top` to `bottom`.
struct Frame {
  double width;
  double height;
  double left;
  double right;
  double top;
  double bottom;
  bool x_grid;  // Whether there are grid lines for the x axis, not only for the y axis.
};
constexpr Frame kInPage = {
    .width = 560, .height = 286, .left = 54, .right = 546, .top = 30, .bottom = 242};
constexpr Frame kDocument = {.width = 760,
                             .height = 480,
                             .left = 74,
                             .right = 732,
                             .top = 142,
                             .bottom = 420,
                             .x_grid = true};
constexpr double kLabelLeft = 50;  // Texts above the axes begin this far left of the y axis.

// Distances from the top of a document.
constexpr double kTitleY = 34;
constexpr double kSubtitleY = 56;
constexpr double kLegendY = 86;
constexpr double kSampleWidth = 30;      // Width of a series' line in a document's legend.
constexpr double kCharacterWidth = 7.2;  // Approximate, in a document; fonts differ.

// Radius of a circle on a line, or half the width of a square.
constexpr double kMarkRadius = 3.6;
// Largest number of parts into which ticks divide a linear axis.
constexpr int kXTicksMax = 8;
constexpr int kYTicksMax = 5;
// Largest number of ticks of a log axis at 1, 2 and 5 times powers of ten. If there would be more,
// TicksOf() returns those of LogTicks().
constexpr int kLogTicksMax = 9;

// The area between the axes.
struct Plane {
  Frame frame;
  Scale x;
  Scale y;
};

struct Range {
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();

  void Add(double at) {
    min = std::min(min, at);
    max = std::max(max, at);
  }
};

Range RangeOf(const Chart& chart, double ChartPoint::*member) {
  Range range;
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      if (std::isfinite(point.y)) range.Add(point.*member);
    }
  }
  return range;
}

// Rounds `at`, > 0, to 1, 2 or 5 times a power of ten: upwards if `up`, else downwards. The factor
// 1e-9 allows for rounding errors.
double RoundOnLog(double at, bool up) {
  const double power = std::pow(10, std::floor(std::log10(at)));
  double below = power;
  for (const double multiple : {1, 2, 5, 10}) {
    if (up && multiple * power >= at * (1 - 1e-9)) return multiple * power;
    if (multiple * power <= at * (1 + 1e-9)) below = multiple * power;
  }
  return below;
}

std::vector<double> TicksOf(const Scale& scale, int linear_count_max) {
  if (!scale.log) return LinearTicks(scale.min, scale.max, linear_count_max);
  std::vector<double> ticks;
  // The ticks are all numbers from one end of the axis to the other that are 1, 2 or 5 times a
  // power of ten. MakeScale() has rounded both ends to such numbers. 1.5 times a tick, rounded
  // upwards, is the next tick.
  for (double tick = scale.min; tick <= scale.max * (1 + 1e-9);
       tick = RoundOnLog(tick * 1.5, true)) {
    ticks.push_back(tick);
  }
  if (ticks.size() <= kLogTicksMax) return ticks;
  return LogTicks(scale.min, scale.max, kLogTicksMax);
}

// Returns the scale of an axis whose points are in `range`. If `to_a_tick`, a linear axis begins
// and ends at ticks.
Scale MakeScale(const ChartAxis& axis, Range range, bool to_a_tick, double first_pixel,
                double last_pixel) {
  range.max = std::max(range.max, axis.reach);
  if (axis.log) {
    range.min = RoundOnLog(range.min, false);
    range.max = RoundOnLog(range.max, true);
    if (range.min == range.max) range.max *= 2;
  } else {
    range.min = std::min(range.min, 0.0);
    range.max = std::max(range.max, 0.0);
    if (range.min == range.max) range.max = 1;
    if (to_a_tick) {
      const double step = TickStep(range.min, range.max, kYTicksMax);
      range.min = std::floor(range.min / step + 1e-9) * step;
      range.max = std::ceil(range.max / step - 1e-9) * step;
    }
  }
  if (!axis.ticks.empty()) range.max = std::max(range.max, axis.ticks.back().at);
  return {axis.log, range.min, range.max, first_pixel, last_pixel};
}

// Returns a text such as "20,000", "0.05" or, from 1e6 on, "3e+08". There is room left of the y
// axis for 7 characters.
std::string NumberText(double number) {
  if (std::abs(number) >= 1e6) return absl::StrFormat("%.3g", number);
  if (number >= 1000 && number == std::floor(number)) return CountText(std::llround(number));
  return absl::StrFormat("%.6g", number);
}

std::vector<ChartTick> LabelledTicks(const ChartAxis& axis, const Scale& scale, int count_max) {
  if (!axis.ticks.empty()) return axis.ticks;
  std::vector<ChartTick> ticks;
  for (const double at : TicksOf(scale, count_max)) ticks.push_back({at, NumberText(at)});
  return ticks;
}

void AppendText(double x, double y, const char* attributes, const std::string& text,
                std::string* svg) {
  absl::StrAppendFormat(svg, "<text x=\"%.1f\" y=\"%.1f\"%s>%s</text>\n", x, y, attributes,
                        XmlText(text));
}

void AppendLine(double x1, double y1, double x2, double y2, const char* style, std::string* svg) {
  absl::StrAppendFormat(svg,
                        "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                        style, x1, y1, x2, y2);
}

// Draws grid lines of a log x axis at 2, 3, ... 9 times each power of ten.
void AppendFineGrid(const Plane& plane, std::string* svg) {
  const auto& [frame, x, y] = plane;
  for (double power = std::floor(std::log10(x.min)); power < std::log10(x.max); ++power) {
    for (int multiple = 2; multiple <= 9; ++multiple) {
      const double at = multiple * std::pow(10, power);
      if (at > x.min && at < x.max) AppendLine(x(at), frame.top, x(at), frame.bottom, "fine", svg);
    }
  }
}

void AppendAxes(const Chart& chart, const Plane& plane, std::string* svg) {
  const auto& [frame, x, y] = plane;
  for (const ChartTick& tick : LabelledTicks(chart.y, y, kYTicksMax)) {
    AppendLine(frame.left, y(tick.at), frame.right, y(tick.at), "grid", svg);
    AppendText(frame.left - 8, y(tick.at) + 4, " text-anchor=\"end\"", tick.text, svg);
  }
  if (frame.x_grid && x.log) AppendFineGrid(plane, svg);
  for (const ChartTick& tick : LabelledTicks(chart.x, x, kXTicksMax)) {
    if (frame.x_grid) AppendLine(x(tick.at), frame.top, x(tick.at), frame.bottom, "grid", svg);
    AppendLine(x(tick.at), frame.bottom, x(tick.at), frame.bottom + 5, "axis", svg);
    // A long label at the right end must not stick out.
    const bool last = x(tick.at) > frame.right - 12 && tick.text.size() > 4;
    AppendText(last ? frame.right + 8 : x(tick.at), frame.bottom + 19,
               last ? " text-anchor=\"end\"" : " text-anchor=\"middle\"", tick.text, svg);
  }
  AppendLine(frame.left, frame.bottom, frame.right, frame.bottom, "axis", svg);
  AppendText(frame.left - kLabelLeft, frame.top - 16, "", chart.y.label, svg);
  AppendText((frame.left + frame.right) / 2, frame.bottom + 39, " text-anchor=\"middle\"",
             chart.x.label, svg);
}

// Draws a mark at each point that is not a gap.
void AppendMarks(const ChartSeries& series, const Plane& plane, std::string* svg) {
  for (const ChartPoint& point : series.points) {
    if (!std::isfinite(point.y)) continue;
    const double x = plane.x(point.x), y = plane.y(point.y);
    switch (series.style) {
      case ChartStyle::kDots:
      case ChartStyle::kRings:
        absl::StrAppendFormat(svg, "<circle class=\"%s%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"/>\n",
                              series.style == ChartStyle::kRings ? "ring" : "dot", series.color, x,
                              y);
        break;
      case ChartStyle::kCircles:
        absl::StrAppendFormat(svg,
                              "<circle class=\"dot%d mark\" cx=\"%.1f\" cy=\"%.1f\" r=\"%g\"/>\n",
                              series.color, x, y, kMarkRadius);
        break;
      case ChartStyle::kSquares:
        absl::StrAppendFormat(
            svg, "<rect class=\"dot%d mark\" x=\"%.1f\" y=\"%.1f\" width=\"%g\" height=\"%g\"/>\n",
            series.color, x - kMarkRadius, y - kMarkRadius, 2 * kMarkRadius, 2 * kMarkRadius);
        break;
      case ChartStyle::kLine:
      case ChartStyle::kDashed:
      case ChartStyle::kArea:
        break;
    }
  }
}

// Draws the points [begin, end), none of which is a gap, as one path.
void AppendPath(const ChartSeries& series, std::size_t begin, std::size_t end, const Plane& plane,
                std::string* svg) {
  const auto& [frame, x, y] = plane;
  std::string path;
  for (std::size_t i = begin; i < end; ++i) {
    const ChartPoint& point = series.points[i];
    absl::StrAppendFormat(&path, "%s%.1f,%.1f", i == begin ? "M" : "L", x(point.x), y(point.y));
  }
  if (end - begin == 1) {  // A path of one point is invisible.
    absl::StrAppendFormat(svg, "<circle class=\"dot%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"2\"/>\n",
                          series.color, x(series.points[begin].x), y(series.points[begin].y));
  }
  if (series.style == ChartStyle::kArea) {
    absl::StrAppendFormat(svg, "<path class=\"area%d\" d=\"%sL%.1f,%.1fL%.1f,%.1fZ\"/>\n",
                          series.color, path, x(series.points[end - 1].x), frame.bottom,
                          x(series.points[begin].x), frame.bottom);
  }
  absl::StrAppendFormat(svg, "<path class=\"line%d%s\" d=\"%s\"/>\n", series.color,
                        series.style == ChartStyle::kDashed ? " dashed" : "", path);
}

bool HasLine(const ChartSeries& series) {
  return series.style != ChartStyle::kDots && series.style != ChartStyle::kRings;
}

void AppendSeries(const ChartSeries& series, const Plane& plane, std::string* svg) {
  for (std::size_t i = 0; HasLine(series) && i < series.points.size();) {
    const auto is_gap = [](const ChartPoint& point) { return !std::isfinite(point.y); };
    const std::size_t end = std::find_if(series.points.begin() + i, series.points.end(), is_gap) -
                            series.points.begin();
    if (end > i) AppendPath(series, i, end, plane, svg);
    i = end + 1;
  }
  AppendMarks(series, plane, svg);
}

void AppendBound(const ChartBound& bound, const Plane& plane, std::string* svg) {
  const auto& [frame, x, y] = plane;
  AppendLine(frame.left, y(bound.y), frame.right, y(bound.y), "bound", svg);
  AppendText(frame.right, y(bound.y) - 6, " class=\"bound-label\" text-anchor=\"end\"", bound.label,
             svg);
}

void AppendNotes(const std::vector<ChartNote>& notes, const Plane& plane, std::string* svg) {
  const auto& [frame, x, y] = plane;
  for (const ChartNote& note : notes) {
    absl::StrAppendFormat(svg,
                          "<rect class=\"note\" x=\"%.1f\" y=\"%g\" width=\"%.1f\" height=\"%g\">"
                          "<title>%s</title></rect>\n",
                          x(note.begin), frame.top, std::max(0.1, x(note.end) - x(note.begin)),
                          frame.bottom - frame.top, XmlText(note.text));
  }
}

void AppendDrawing(const Chart& chart, const Frame& frame, std::string* svg) {
  Range range_y = RangeOf(chart, &ChartPoint::y);
  if (chart.bound.has_value()) range_y.Add(chart.bound->y);
  const Plane plane = {
      frame, MakeScale(chart.x, RangeOf(chart, &ChartPoint::x), false, frame.left, frame.right),
      MakeScale(chart.y, range_y, true, frame.bottom, frame.top)};
  AppendAxes(chart, plane, svg);
  for (const ChartSeries& series : chart.series) AppendSeries(series, plane, svg);
  if (chart.bound.has_value()) AppendBound(*chart.bound, plane, svg);
  AppendNotes(chart.notes, plane, svg);
}

std::string PageLegend(const std::vector<ChartSeries>& series) {
  std::string html = "<ul class=\"legend\">";
  for (const ChartSeries& one : series) {
    const char* shape = one.style == ChartStyle::kDashed  ? "dash"
                        : one.style == ChartStyle::kDots  ? "disc"
                        : one.style == ChartStyle::kRings ? "hoop"
                                                          : "bar";
    absl::StrAppendFormat(&html, "<li><i class=\"%s key%d\"></i>%s</li>", shape, one.color,
                          XmlText(one.label));
  }
  return html + "</ul>\n";
}

// Draws for each series a short line or mark in its style, and its label. The series that the chart
// draws on top comes first.
void AppendDocumentLegend(std::vector<ChartSeries> series, std::string* svg) {
  // This scale maps each coordinate to itself, because the points below are positions in the view
  // box.
  const Scale same = {.first_pixel = 0, .last_pixel = 1};
  const Plane plane = {{.bottom = kLegendY}, same, same};
  double x = kDocument.left - kLabelLeft;
  std::reverse(series.begin(), series.end());
  for (ChartSeries& one : series) {
    one.points = {{x, kLegendY}, {x + kSampleWidth, kLegendY}};
    if (HasLine(one)) AppendPath(one, 0, 2, plane, svg);
    one.points = {{x + kSampleWidth / 2, kLegendY}};
    AppendMarks(one, plane, svg);
    x += kSampleWidth + 8;
    AppendText(x, kLegendY + 4.5, "", one.label, svg);
    x += static_cast<double>(one.label.size()) * kCharacterWidth + 22;
  }
}

}  // namespace

std::string RenderChart(const Chart& chart) {
  std::string html = absl::StrFormat(
      "%s<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"%s\">\n", PageLegend(chart.series),
      kInPage.width, kInPage.height, XmlText(chart.description));
  AppendDrawing(chart, kInPage, &html);
  return html + "</svg>\n";
}

std::string RenderDocument(const Chart& chart, const std::string& title,
                           const std::string& subtitle) {
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %1$g %2$g\" width=\"%1$g\" "
      "height=\"%2$g\" role=\"img\">\n<title>%3$s</title>\n<desc>%4$s</desc>\n<style>%5$s</style>\n"
      "<rect class=\"background\" width=\"100%%\" height=\"100%%\" rx=\"6\"/>\n",
      kDocument.width, kDocument.height, XmlText(title), XmlText(chart.description),
      ChartDocumentStyle());
  AppendText(kDocument.left - kLabelLeft, kTitleY, " class=\"title\"", title, &svg);
  AppendText(kDocument.left - kLabelLeft, kSubtitleY, "", subtitle, &svg);
  AppendDocumentLegend(chart.series, &svg);
  AppendDrawing(chart, kDocument, &svg);
  return svg + "</svg>\n";
}

}  // namespace softlookup::plot
