#include "client/plot/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/output/xml_text.h"
#include "client/plot/axis_ticks.h"
#include "client/plot/scale.h"

namespace softlookup::tool {
namespace {

// Positions and lengths in pixels. kLeft, kRight, kTop and kBottom bound the rectangle that the
// axes span.
constexpr double kWidth = 760;
constexpr double kHeight = 480;
constexpr double kLeft = 72;
constexpr double kRight = kWidth - 28;
constexpr double kTop = 106;
constexpr double kBottom = kHeight - 62;
constexpr double kLegendY = 84;
constexpr double kLegendLine = 30;  // Length of the sample line of a series.
constexpr double kCharacter = 7.2;  // Approximate width of a character; fonts differ.
constexpr double kMarker = 3.6;     // Half the size of a marker.
constexpr int kXTicksMax = 8;
constexpr int kYTicksMax = 6;

constexpr char kBackground[] = "#ffffff";
constexpr char kText[] = "#222222";
constexpr char kFaintText[] = "#5f5f5f";
constexpr char kGrid[] = "#dddddd";
constexpr char kMinorGrid[] = "#f1f1f1";
constexpr char kFrame[] = "#888888";

Scale MakeScale(const SvgAxis& axis, const std::vector<SvgSeries>& series, double SvgPoint::*member,
                int ticks_max, double first_pixel, double last_pixel) {
  double min = std::numeric_limits<double>::infinity();
  double max = -min;
  for (const SvgSeries& one : series) {
    for (const SvgPoint& point : one.points) {
      const double coordinate = point.*member;
      if (!std::isfinite(coordinate) || (axis.log && coordinate <= 0)) std::abort();
      min = std::min(min, coordinate);
      max = std::max(max, coordinate);
    }
  }
  if (min > max) std::abort();
  if (axis.min.has_value()) min = std::min(min, *axis.min);
  if (axis.max.has_value()) max = std::max(max, *axis.max);
  if (min == max) {
    const double half = std::max(0.5, std::abs(min) / 2);
    max = axis.log ? max * 3 : max + half;
    min = axis.log ? min / 3 : min - half;
  }
  if (!axis.log) {
    const double step = TickStep(min, max, ticks_max);
    if (!axis.min.has_value()) min = std::floor(min / step + 1e-9) * step;
    if (!axis.max.has_value()) max = std::ceil(max / step - 1e-9) * step;
  }
  return {axis.log, min, max, first_pixel, last_pixel};
}

void AppendText(double x, double y, std::string_view attributes, std::string_view text,
                std::string* svg) {
  if (text.empty()) return;
  absl::StrAppendFormat(svg, "<text x=\"%.2f\" y=\"%.2f\"%s>%s</text>\n", x, y, attributes,
                        XmlText(text));
}

void AppendLine(double x1, double y1, double x2, double y2, std::string_view color,
                std::string* svg) {
  absl::StrAppendFormat(svg,
                        "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" stroke=\"%s\"/>\n",
                        x1, y1, x2, y2, color);
}

void AppendMarker(SvgMarker marker, double x, double y, std::string* svg) {
  if (marker == SvgMarker::kCircle) {
    absl::StrAppendFormat(svg, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\"/>\n", x, y, kMarker);
  } else if (marker == SvgMarker::kSquare) {
    absl::StrAppendFormat(svg, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>\n",
                          x - kMarker, y - kMarker, 2 * kMarker, 2 * kMarker);
  }
}

// Draws a line through `pixels`, and the markers of `series` at `marked`.
void AppendCurve(const SvgSeries& series, const std::vector<SvgPoint>& pixels,
                 const std::vector<SvgPoint>& marked, std::string* svg) {
  const std::string color = XmlText(series.color);
  absl::StrAppendFormat(
      svg, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%s\"%s points=\"", color,
      series.dashed ? "1.5" : "2.25", series.dashed ? " stroke-dasharray=\"7 5\"" : "");
  for (const SvgPoint& pixel : pixels) {
    absl::StrAppendFormat(svg, "%s%.2f,%.2f", &pixel == pixels.data() ? "" : " ", pixel.x, pixel.y);
  }
  *svg += "\"/>\n";
  if (series.marker == SvgMarker::kNone) return;
  absl::StrAppendFormat(svg, "<g fill=\"%s\" stroke=\"%s\" stroke-width=\"1.2\">\n", color,
                        kBackground);
  for (const SvgPoint& pixel : marked) AppendMarker(series.marker, pixel.x, pixel.y, svg);
  *svg += "</g>\n";
}

void AppendTitles(const SvgPlot& plot, std::string* svg) {
  const std::string faint = absl::StrCat(" fill=\"", kFaintText, "\"");
  AppendText(kLeft, 32, " font-size=\"18\" font-weight=\"bold\"", plot.title, svg);
  AppendText(kLeft, 54, faint, plot.subtitle, svg);
  AppendText((kLeft + kRight) / 2, kHeight - 18, " text-anchor=\"middle\"", plot.x.label, svg);
  const double middle = (kTop + kBottom) / 2;
  AppendText(24, middle,
             absl::StrFormat(" text-anchor=\"middle\" transform=\"rotate(-90 24 %.2f)\"", middle),
             plot.y.label, svg);
}

// Draws fine grid lines for a log x axis, at 2, 3, ... 9 times each power of ten.
void AppendMinorGrid(const Scale& x, std::string* svg) {
  if (!x.log) return;
  for (double power = std::floor(std::log10(x.min)); power < std::log10(x.max); ++power) {
    for (int multiple = 2; multiple <= 9; ++multiple) {
      const double at = multiple * std::pow(10, power);
      if (at > x.min && at < x.max) AppendLine(x(at), kTop, x(at), kBottom, kMinorGrid, svg);
    }
  }
}

void AppendAxes(const Scale& x, const Scale& y, std::string* svg) {
  const auto ticks = [](const Scale& scale, int count_max) {
    return scale.log ? LogTicks(scale.min, scale.max, count_max)
                     : LinearTicks(scale.min, scale.max, count_max);
  };
  AppendMinorGrid(x, svg);
  for (const double tick : ticks(x, kXTicksMax)) {
    AppendLine(x(tick), kTop, x(tick), kBottom, kGrid, svg);
    AppendLine(x(tick), kBottom, x(tick), kBottom + 5, kFrame, svg);
    AppendText(x(tick), kBottom + 20, " text-anchor=\"middle\"", absl::StrFormat("%g", tick), svg);
  }
  for (const double tick : ticks(y, kYTicksMax)) {
    AppendLine(kLeft, y(tick), kRight, y(tick), kGrid, svg);
    AppendLine(kLeft - 5, y(tick), kLeft, y(tick), kFrame, svg);
    AppendText(kLeft - 10, y(tick) + 4.5, " text-anchor=\"end\"", absl::StrFormat("%g", tick), svg);
  }
  AppendLine(kLeft, kTop, kLeft, kBottom, kFrame, svg);
  AppendLine(kLeft, kBottom, kRight, kBottom, kFrame, svg);
}

void AppendLegend(const std::vector<SvgSeries>& series, std::string* svg) {
  double x = kLeft;
  for (const SvgSeries& one : series) {
    AppendCurve(one, {{x, kLegendY}, {x + kLegendLine, kLegendY}},
                {{x + kLegendLine / 2, kLegendY}}, svg);
    x += kLegendLine + 8;
    AppendText(x, kLegendY + 4.5, "", one.label, svg);
    x += static_cast<double>(one.label.size()) * kCharacter + 22;
  }
}

}  // namespace

std::string RenderSvg(const SvgPlot& plot) {
  const Scale x = MakeScale(plot.x, plot.series, &SvgPoint::x, kXTicksMax, kLeft, kRight);
  const Scale y = MakeScale(plot.y, plot.series, &SvgPoint::y, kYTicksMax, kBottom, kTop);
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" "
      "role=\"img\" font-family=\"sans-serif\" font-size=\"13\" fill=\"%s\">\n"
      "<title>%s</title>\n"
      "<rect width=\"100%%\" height=\"100%%\" rx=\"6\" fill=\"%s\"/>\n",
      kWidth, kHeight, kWidth, kHeight, kText, XmlText(plot.title), kBackground);
  AppendTitles(plot, &svg);
  AppendAxes(x, y, &svg);
  for (auto series = plot.series.rbegin(); series != plot.series.rend(); ++series) {
    std::vector<SvgPoint> pixels;
    for (const SvgPoint& point : series->points) pixels.push_back({x(point.x), y(point.y)});
    AppendCurve(*series, pixels, pixels, &svg);
  }
  AppendLegend(plot.series, &svg);
  return svg + "</svg>\n";
}

}  // namespace softlookup::tool
