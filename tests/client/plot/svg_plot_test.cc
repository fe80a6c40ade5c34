#include "client/plot/svg_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "client/plot/axis_ticks.h"

namespace softlookup::tool {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;
using ::testing::SizeIs;

SvgPlot TwoCurves() {
  return {.title = "Title",
          .subtitle = "Subtitle",
          .x = {.label = "x", .log = true},
          .y = {.label = "y", .min = 0, .max = 1},
          .series = {{.label = "up",
                      .color = "#0072b2",
                      .marker = SvgMarker::kCircle,
                      .points = {{0.01, 0}, {0.1, 0.5}, {1, 1}}},
                     {.label = "level",
                      .color = "#555555",
                      .dashed = true,
                      .points = {{0.01, 0.5}, {1, 0.5}}}}};
}

// The numbers of the n-th curve, as x1, y1, x2, ...
std::vector<double> Curve(const std::string& svg, int n) {
  const std::regex curve("<polyline [^>]*points=\"([^\"]*)\"");
  const std::string points =
      (*std::next(std::sregex_iterator(svg.begin(), svg.end(), curve), n))[1];
  std::istringstream stream(std::regex_replace(points, std::regex(","), " "));
  return {std::istream_iterator<double>(stream), {}};
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// Every element is closed in its turn, and every attribute quoted.
void ExpectWellFormed(const std::string& svg) {
  const std::regex tag(
      R"re(<(/?)([a-z]+)((?: [a-zA-Z0-9:-]+="[^"<&]*(?:&(?:amp|lt|gt|quot);[^"<&]*)*")*)(/?)>)re");
  std::vector<std::string> open;
  std::string rest = svg;
  std::smatch match;
  for (; std::regex_search(rest, match, tag); rest = match.suffix()) {
    EXPECT_THAT(match.prefix().str(), Not(HasSubstr("<")));
    if (match[1].length() > 0) {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), match[2]);
      open.pop_back();
    } else if (match[4].length() == 0) {
      open.push_back(match[2]);
    }
  }
  EXPECT_EQ(rest, "\n");
  EXPECT_THAT(open, SizeIs(0));
}

TEST(SvgPlotTest, HasTitlesAxesCurvesMarkersAndALegend) {
  const std::string svg = RenderSvg(TwoCurves());
  ExpectWellFormed(svg);
  EXPECT_THAT(svg, HasSubstr("<title>Title</title>"));
  for (const char* text :
       {"Title", "Subtitle", "x", "y", "up", "level", "0.01", "0.1", "1", "0.8"}) {
    EXPECT_GE(Count(svg, std::string(">") + text + "</text>"), 1) << text;
  }
  EXPECT_EQ(Count(svg, "<polyline"), 4);         // Two curves, two samples in the legend.
  EXPECT_EQ(Count(svg, "stroke-dasharray"), 2);  // Of the dashed one.
  EXPECT_EQ(Count(svg, "<circle"), 4);           // Three points, one sample.
  EXPECT_THAT(svg, HasSubstr("<rect width=\"100%\" height=\"100%\""));  // The background.
}

TEST(SvgPlotTest, NeedsNothingFromOutside) {
  const std::string svg = RenderSvg(TwoCurves());
  EXPECT_EQ(Count(svg, "://"), 1);  // The name space.
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, Not(HasSubstr("<style")));
  EXPECT_THAT(svg, HasSubstr("font-family=\"sans-serif\""));
}

TEST(SvgPlotTest, TheFirstSeriesIsDrawnLastSoOnTop) {
  const std::string svg = RenderSvg(TwoCurves());
  EXPECT_THAT(Curve(svg, 0), SizeIs(4));
  EXPECT_THAT(Curve(svg, 1), SizeIs(6));
}

TEST(SvgPlotTest, LogAxisGivesEveryDecadeTheSameRoom) {
  const std::vector<double> curve = Curve(RenderSvg(TwoCurves()), 1);
  ASSERT_THAT(curve, SizeIs(6));
  EXPECT_NEAR(curve[2] - curve[0], curve[4] - curve[2], 0.011);
  EXPECT_GT(curve[2], curve[0]);
  EXPECT_NEAR(curve[1] - curve[3], curve[3] - curve[5], 0.011);  // Upwards is less in SVG.
  EXPECT_GT(curve[1], curve[3]);
}

TEST(SvgPlotTest, AxesEndAtRoundNumbersUnlessTheyAreGiven) {
  SvgPlot plot{.series = {{.points = {{0.3, -7}, {9.6, 18}}}}};
  std::string svg = RenderSvg(plot);
  for (const char* tick : {"0", "2", "10", "-10", "-5", "20"}) {
    EXPECT_GE(Count(svg, std::string(">") + tick + "</text>"), 1) << tick;
  }
  plot.y.max = 100;
  EXPECT_THAT(RenderSvg(plot), HasSubstr(">100</text>"));
  plot.y.max = 3;  // The axis never ends before the points.
  EXPECT_EQ(Curve(RenderSvg(plot), 0).back(), Curve(RenderSvg(TwoCurves()), 1).back());
}

TEST(SvgPlotTest, OnePointIsEnough) {
  for (const bool log : {false, true}) {
    const std::string svg =
        RenderSvg({.x = {.log = log}, .series = {{.points = {{1000, 0}}}, {.label = "none"}}});
    ExpectWellFormed(svg);
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

TEST(SvgPlotTest, TextIsEscaped) {
  SvgPlot plot = TwoCurves();
  plot.title = "a < b & \"c\" > \x01";
  plot.series[0].label = "</svg>";
  plot.series[0].color = "\"><script>";
  const std::string svg = RenderSvg(plot);
  ExpectWellFormed(svg);
  EXPECT_THAT(svg, HasSubstr("<title>a &lt; b &amp; &quot;c&quot; &gt;  </title>"));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
}

TEST(SvgPlotTest, TheSamePlotGivesTheSameBytes) {
  EXPECT_EQ(RenderSvg(TwoCurves()), RenderSvg(TwoCurves()));
}

TEST(SvgPlotDeathTest, CoordinatesMustBeThereAndOnTheAxis) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_DEATH(RenderSvg({}), "");
  EXPECT_DEATH(RenderSvg({.series = {{.points = {{0, infinity}}}}}), "");
  EXPECT_DEATH(RenderSvg({.series = {{.points = {{std::nan(""), 0}}}}}), "");
  EXPECT_DEATH(RenderSvg({.x = {.log = true}, .series = {{.points = {{0, 1}}}}}), "");
}

TEST(TicksTest, LinearTicksAreRound) {
  EXPECT_THAT(LinearTicks(0, 1, 6), Pointwise(DoubleEq(), {0.0, 0.2, 0.4, 0.6, 0.8, 1.0}));
  EXPECT_THAT(LinearTicks(-7, 18, 6), ElementsAre(-5, 0, 5, 10, 15));
  EXPECT_THAT(LinearTicks(1e6, 1.3e6, 3), ElementsAre(1e6, 1.1e6, 1.2e6, 1.3e6));
  EXPECT_FALSE(std::signbit(LinearTicks(-1, 1, 4)[2]));
}

TEST(TicksTest, LogTicksArePowersOfTenOrFinerWhereThereIsOne) {
  EXPECT_THAT(LogTicks(0.01, 100, 8), Pointwise(DoubleNear(1e-12), {0.01, 0.1, 1.0, 10.0, 100.0}));
  EXPECT_THAT(LogTicks(0.02, 50, 8), Pointwise(DoubleNear(1e-12), {0.1, 1.0, 10.0}));
  EXPECT_THAT(LogTicks(1e-6, 1e6, 8), SizeIs(7));
  EXPECT_THAT(LogTicks(2, 50, 8), Pointwise(DoubleNear(1e-12), {2.0, 5.0, 10.0, 20.0, 50.0}));
  EXPECT_THAT(LogTicks(3, 4, 5), Pointwise(DoubleNear(1e-12), {3.0, 3.2, 3.4, 3.6, 3.8, 4.0}));
}

}  // namespace
}  // namespace softlookup::tool
