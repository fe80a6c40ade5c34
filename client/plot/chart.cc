#include "client/plot/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/output/figure_text.h"
#include "client/output/xml_text.h"
#include "client/plot/axis_ticks.h"
#include "client/plot/scale.h"

namespace softlookup::loadtest {
namespace {

using tool::Scale;
using tool::XmlText;

// Positions and lengths in units of the view box, which are about pixels. kLeft, kRight, kTop and
// kBottom bound the area between the axes.
constexpr double kWidth = 560;
constexpr double kHeight = 286;
constexpr double kLeft = 54;
constexpr double kRight = kWidth - 14;
constexpr double kTop = 30;
constexpr double kBottom = kHeight - 44;
constexpr int kXTicksMax = 8;
constexpr int kYTicksMax = 5;
constexpr int kLogTicksMax = 9;

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

// Rounds `at`, > 0, to 1, 2 or 5 times a power of ten: upwards if `up`, else downwards.
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
  if (!scale.log) return tool::LinearTicks(scale.min, scale.max, linear_count_max);
  std::vector<double> ticks;
  for (double tick = scale.min; tick <= scale.max * (1 + 1e-9);
       tick = RoundOnLog(tick * 1.5, true)) {
    ticks.push_back(tick);
  }
  if (ticks.size() <= kLogTicksMax) return ticks;
  return tool::LogTicks(scale.min, scale.max, kLogTicksMax);
}

Scale MakeScale(const ChartAxis& axis, Range range, bool to_a_tick, double first_pixel,
                double last_pixel) {
  range.max = std::max(range.max, axis.reach);
  if (axis.log) {
    range.min = RoundOnLog(range.min, false);
    range.max = RoundOnLog(range.max, true);
    if (range.min == range.max) range.max *= 2;
  } else {
    range.min = 0;
    if (!(range.max > 0)) range.max = 1;
    if (to_a_tick) {
      const double step = tool::TickStep(0, range.max, kYTicksMax);
      range.max = std::ceil(range.max / step - 1e-9) * step;
    }
  }
  if (!axis.ticks.empty()) range.max = std::max(range.max, axis.ticks.back().at);
  return {axis.log, range.min, range.max, first_pixel, last_pixel};
}

// "20,000", "0.05".
std::string NumberText(double number) {
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

void AppendAxes(const Chart& chart, const Scale& x, const Scale& y, std::string* svg) {
  for (const ChartTick& tick : LabelledTicks(chart.y, y, kYTicksMax)) {
    AppendLine(kLeft, y(tick.at), kRight, y(tick.at), "grid", svg);
    AppendText(kLeft - 8, y(tick.at) + 4, " text-anchor=\"end\"", tick.text, svg);
  }
  for (const ChartTick& tick : LabelledTicks(chart.x, x, kXTicksMax)) {
    AppendLine(x(tick.at), kBottom, x(tick.at), kBottom + 5, "axis", svg);
    // A long label at the right end must not stick out.
    const bool last = x(tick.at) > kRight - 12 && tick.text.size() > 4;
    AppendText(last ? kRight + 8 : x(tick.at), kBottom + 19,
               last ? " text-anchor=\"end\"" : " text-anchor=\"middle\"", tick.text, svg);
  }
  AppendLine(kLeft, kBottom, kRight, kBottom, "axis", svg);
  AppendText(4, 14, " class=\"label\"", chart.y.label, svg);
  AppendText((kLeft + kRight) / 2, kHeight - 5, " class=\"label\" text-anchor=\"middle\"",
             chart.x.label, svg);
}

void AppendDots(const ChartSeries& series, const Scale& x, const Scale& y, std::string* svg) {
  for (const ChartPoint& point : series.points) {
    if (!std::isfinite(point.y)) continue;
    absl::StrAppendFormat(svg, "<circle class=\"%s%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"/>\n",
                          series.style == ChartStyle::kRings ? "ring" : "dot", series.color,
                          x(point.x), y(point.y));
  }
}

// Draws the points [begin, end), none of which is a gap, as one path.
void AppendPath(const ChartSeries& series, std::size_t begin, std::size_t end, const Scale& x,
                const Scale& y, std::string* svg) {
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
                          series.color, path, x(series.points[end - 1].x), kBottom,
                          x(series.points[begin].x), kBottom);
  }
  absl::StrAppendFormat(svg, "<path class=\"line%d%s\" d=\"%s\"/>\n", series.color,
                        series.style == ChartStyle::kDashed ? " dashed" : "", path);
}

void AppendSeries(const ChartSeries& series, const Scale& x, const Scale& y, std::string* svg) {
  if (series.style == ChartStyle::kDots || series.style == ChartStyle::kRings) {
    AppendDots(series, x, y, svg);
    return;
  }
  for (std::size_t i = 0; i < series.points.size();) {
    const auto is_gap = [](const ChartPoint& point) { return !std::isfinite(point.y); };
    const std::size_t end = std::find_if(series.points.begin() + i, series.points.end(), is_gap) -
                            series.points.begin();
    if (end > i) AppendPath(series, i, end, x, y, svg);
    i = end + 1;
  }
}

void AppendBound(const ChartBound& bound, const Scale& y, std::string* svg) {
  AppendLine(kLeft, y(bound.y), kRight, y(bound.y), "bound", svg);
  AppendText(kRight, y(bound.y) - 6, " class=\"bound-label\" text-anchor=\"end\"", bound.label,
             svg);
}

void AppendNotes(const std::vector<ChartNote>& notes, const Scale& x, std::string* svg) {
  for (const ChartNote& note : notes) {
    absl::StrAppendFormat(svg,
                          "<rect class=\"note\" x=\"%.1f\" y=\"%g\" width=\"%.1f\" height=\"%g\">"
                          "<title>%s</title></rect>\n",
                          x(note.begin), kTop, std::max(0.1, x(note.end) - x(note.begin)),
                          kBottom - kTop, XmlText(note.text));
  }
}

std::string Legend(const std::vector<ChartSeries>& series) {
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

}  // namespace

std::string RenderChart(const Chart& chart) {
  Range range_y = RangeOf(chart, &ChartPoint::y);
  if (chart.bound.has_value()) range_y.Add(chart.bound->y);
  const Scale x = MakeScale(chart.x, RangeOf(chart, &ChartPoint::x), false, kLeft, kRight);
  const Scale y = MakeScale(chart.y, range_y, true, kBottom, kTop);
  std::string svg = absl::StrFormat("<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"%s\">\n",
                                    kWidth, kHeight, XmlText(chart.description));
  AppendAxes(chart, x, y, &svg);
  for (const ChartSeries& series : chart.series) AppendSeries(series, x, y, &svg);
  if (chart.bound.has_value()) AppendBound(*chart.bound, y, &svg);
  AppendNotes(chart.notes, x, &svg);
  return absl::StrCat(Legend(chart.series), svg, "</svg>\n");
}

// People with any colour vision can tell the colours apart. Their contrast with the background is
// at least 3:1.
const char kChartStyle[] = R"css(
:root { --c1: #1f5fd0; --c2: #0d8074; --c3: #8a3ffc; --c4: #b45309; --c5: #c81e3a; --c6: #5b6470;
  --grid: #e4e7ec; --axis: #9aa3b0; }
@media (prefers-color-scheme: dark) {
  :root { --c1: #6ea8ff; --c2: #35c7b5; --c3: #bf9bff; --c4: #f5a747; --c5: #ff7085; --c6: #a3adba;
    --grid: #262d38; --axis: #566171; } }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { fill: var(--faint); font-size: 11.5px; font-variant-numeric: tabular-nums; }
svg .label { fill: var(--faint); }
.grid { stroke: var(--grid); } .axis { stroke: var(--axis); }
.bound { stroke: var(--c5); stroke-width: 1.5; stroke-dasharray: 2 3; }
svg .bound-label { fill: var(--c5); }
svg path { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
svg .dashed { stroke-width: 1.5; stroke-dasharray: 5 5; }
svg [class^=area] { stroke: none; fill-opacity: .14; }
svg [class^=ring] { fill: var(--card); stroke-width: 2; }
.line1 { stroke: var(--c1); } .area1, .dot1 { fill: var(--c1); } .ring1 { stroke: var(--c1); }
.line2 { stroke: var(--c2); } .area2, .dot2 { fill: var(--c2); } .ring2 { stroke: var(--c2); }
.line3 { stroke: var(--c3); } .area3, .dot3 { fill: var(--c3); } .ring3 { stroke: var(--c3); }
.line4 { stroke: var(--c4); } .area4, .dot4 { fill: var(--c4); } .ring4 { stroke: var(--c4); }
.line5 { stroke: var(--c5); } .area5, .dot5 { fill: var(--c5); } .ring5 { stroke: var(--c5); }
.line6 { stroke: var(--c6); } .area6, .dot6 { fill: var(--c6); } .ring6 { stroke: var(--c6); }
.key1 { color: var(--c1); } .key2 { color: var(--c2); } .key3 { color: var(--c3); }
.key4 { color: var(--c4); } .key5 { color: var(--c5); } .key6 { color: var(--c6); }
.note { fill: transparent; } .note:hover { fill: var(--axis); fill-opacity: .18; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; margin: 0 0 .5rem; padding: 0;
  list-style: none; font-size: .82rem; color: var(--faint); }
.legend li { display: flex; align-items: center; gap: .45rem; }
.legend i { display: inline-block; width: 1.1rem; }
.bar { border-top: 3px solid; border-radius: 2px; } .dash { border-top: 2px dashed; }
.legend .disc, .legend .hoop { width: .65rem; height: .65rem; border-radius: 50%; box-sizing: border-box;
  border: 2px solid; } .disc { background: currentColor; }
)css";

}  // namespace softlookup::loadtest
