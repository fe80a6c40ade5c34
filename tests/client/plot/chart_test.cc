#include "client/plot/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <limits>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/client/malformed.h"

namespace softlookup::plot {
namespace {

using ::softlookup::testing::Malformed;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

Chart TwoCurves() {
  return {.description = "Two curves",
          .x = {.label = "x", .log = true},
          .y = {.label = "y", .reach = 1},
          .series = {{.label = "level",
                      .color = 6,
                      .style = ChartStyle::kDashed,
                      .points = {{0.01, 0.5}, {1, 0.5}}},
                     {.label = "up",
                      .color = 2,
                      .style = ChartStyle::kCircles,
                      .points = {{0.01, 0}, {0.1, 0.5}, {1, 1}}}}};
}

std::string Document(const Chart& chart) { return RenderDocument(chart, "Title", "Subtitle"); }

// The numbers of the n-th line, as x1, y1, x2, ...; those of a document's legend come first.
std::vector<double> Line(const std::string& svg, int n) {
  const std::regex line("<path class=\"line[^>]* d=\"([^\"]*)\"");
  const std::string points = (*std::next(std::sregex_iterator(svg.begin(), svg.end(), line), n))[1];
  std::istringstream stream(std::regex_replace(points, std::regex("[ML,]"), " "));
  return {std::istream_iterator<double>(stream), {}};
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

bool HasText(const std::string& svg, const std::string& text) {
  return Count(svg, ">" + text + "</text>") > 0;
}

TEST(ChartTest, ADocumentHasTitlesAxesLinesMarksAndALegend) {
  const std::string svg = Document(TwoCurves());
  EXPECT_EQ(Malformed(svg), "");
  EXPECT_THAT(svg, AllOf(StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\" "),
                         HasSubstr("role=\"img\""), HasSubstr("<title>Title</title>"),
                         HasSubstr("<desc>Two curves</desc>")));
  for (const char* text :
       {"Title", "Subtitle", "x", "y", "up", "level", "0.01", "0.1", "1", "0.8"}) {
    EXPECT_TRUE(HasText(svg, text)) << text;
  }
  EXPECT_EQ(Count(svg, "class=\"line"), 4);         // Two lines, two samples in the legend.
  EXPECT_EQ(Count(svg, " dashed\""), 2);            // Of the dashed one.
  EXPECT_EQ(Count(svg, "class=\"dot2 mark\""), 4);  // Three points, one sample.
  EXPECT_EQ(Count(svg, "class=\"background\""), 1);
}

TEST(ChartTest, APageHasItsLegendBeforeTheDrawing) {
  const std::string html = RenderChart(TwoCurves());
  EXPECT_EQ(Malformed(html), "");
  EXPECT_THAT(html, AllOf(StartsWith("<ul class=\"legend\">"), HasSubstr(">level</li>"),
                          HasSubstr("role=\"img\" aria-label=\"Two curves\"")));
  EXPECT_EQ(Count(html, "class=\"line"), 2);
  EXPECT_EQ(Count(html, "class=\"dot2 mark\""), 3);
}

TEST(ChartTest, ADocumentNeedsNothingFromOutside) {
  const std::string svg = Document(TwoCurves());
  EXPECT_EQ(Count(svg, "://"), 1);  // The name space.
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("url(")),
                         Not(HasSubstr("@import")), Not(HasSubstr("var("))));
  EXPECT_THAT(svg, AllOf(HasSubstr("<style>"), HasSubstr("font-family: sans-serif")));
}

TEST(ChartTest, TheLastSeriesIsOnTopAndFirstInADocumentsLegend) {
  const std::string svg = Document(TwoCurves());
  EXPECT_THAT(Line(svg, 2), SizeIs(4));
  EXPECT_THAT(Line(svg, 3), SizeIs(6));
  EXPECT_LT(svg.find(">up<"), svg.find(">level<"));
}

TEST(ChartTest, ALogAxisGivesEveryDecadeTheSameRoom) {
  const std::vector<double> line = Line(Document(TwoCurves()), 3);
  ASSERT_THAT(line, SizeIs(6));
  EXPECT_NEAR(line[2] - line[0], line[4] - line[2], 0.11);
  EXPECT_GT(line[2], line[0]);
  EXPECT_NEAR(line[1] - line[3], line[3] - line[5], 0.11);  // Upwards is less in SVG.
  EXPECT_GT(line[1], line[3]);
}

TEST(ChartTest, AxesBeginAtZeroAndEndAtRoundNumbersUnlessTheyReachFurther) {
  Chart chart{.series = {{.points = {{3, 7}, {10, 18}}}}};
  const std::string svg = RenderChart(chart);
  for (const char* tick : {"0", "2", "10", "5", "20"}) EXPECT_TRUE(HasText(svg, tick)) << tick;
  EXPECT_FALSE(HasText(svg, "25"));
  chart.y.reach = 100;
  EXPECT_TRUE(HasText(RenderChart(chart), "100"));
  chart.y.reach = 3;  // The axis never ends before the points.
  EXPECT_EQ(RenderChart(chart), svg);
}

TEST(ChartTest, ATickFromAMillionOnIsShortAndRight) {
  struct Case {
    double y;
    std::vector<std::string> ticks;
  };
  for (const Case& each :
       {Case{300'000, {"0", "100,000", "200,000", "300,000"}},
        Case{1'200'000, {"500,000", "1e+06", "1.5e+06"}}, Case{3e8, {"1e+08", "2e+08", "3e+08"}},
        Case{1e19, {"2e+18", "8e+18", "1e+19"}}, Case{-3e8, {"-1e+08", "-3e+08"}},
        Case{1e300, {"2e+299", "1e+300"}}}) {
    const Chart chart{.series = {{.points = {{1, 0}, {2, each.y}}}}};
    for (const std::string& svg : {RenderChart(chart), Document(chart)}) {
      for (const std::string& tick : each.ticks) EXPECT_TRUE(HasText(svg, tick)) << tick;
      static const std::regex kYTick(" text-anchor=\"end\">([^<]*)</text>");
      for (std::sregex_iterator i(svg.begin(), svg.end(), kYTick), end; i != end; ++i) {
        EXPECT_LE((*i)[1].length(), 7) << (*i)[1];
      }
    }
  }
}

TEST(ChartTest, AnAxisWithNegativeCoordinatesEndsAtZeroUnlessAnyIsPositive) {
  Chart chart{.series = {{.points = {{1, -0.7}, {2, -2.3}}}}};
  std::string svg = RenderChart(chart);
  for (const char* tick : {"0", "-0.5", "-1", "-1.5", "-2", "-2.5"}) {
    EXPECT_TRUE(HasText(svg, tick)) << tick;
  }
  EXPECT_FALSE(HasText(svg, "-0"));
  // The top of the axis is 0 and its bottom -2.5.
  const std::vector<double> line = Line(svg, 0);
  ASSERT_THAT(line, SizeIs(4));
  EXPECT_NEAR((line[1] - 30) / (242 - 30), 0.7 / 2.5, 1e-3);
  EXPECT_NEAR((line[3] - 30) / (242 - 30), 2.3 / 2.5, 1e-3);

  chart.series[0].points[0].y = 1;
  svg = RenderChart(chart);
  for (const char* tick : {"1", "0", "-1", "-2"}) EXPECT_TRUE(HasText(svg, tick)) << tick;
}

TEST(ChartTest, ALogAxisBeginsAndEndsAtRoundNumbers) {
  const Chart chart{.x = {.log = true}, .series = {{.points = {{0.03, 1}, {0.3, 1}}}}};
  const std::string svg = RenderChart(chart);
  for (const char* tick : {"0.02", "0.05", "0.1", "0.2", "0.5"}) {
    EXPECT_TRUE(HasText(svg, tick)) << tick;
  }
}

TEST(ChartTest, OnePointIsEnough) {
  for (const bool log : {false, true}) {
    for (const ChartStyle style :
         {ChartStyle::kLine, ChartStyle::kDashed, ChartStyle::kArea, ChartStyle::kDots,
          ChartStyle::kRings, ChartStyle::kCircles, ChartStyle::kSquares}) {
      const Chart chart{.x = {.log = log},
                        .series = {{.style = style, .points = {{1000, 0}}}, {.label = "none"}}};
      for (const std::string& markup : {RenderChart(chart), Document(chart)}) {
        EXPECT_EQ(Malformed(markup), "");
        EXPECT_THAT(markup, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
      }
    }
  }
}

TEST(ChartTest, AGapPartsALineAndHasNoMark) {
  Chart chart = TwoCurves();
  chart.series[1].points[1].y = std::numeric_limits<double>::quiet_NaN();
  const std::string html = RenderChart(chart);
  EXPECT_EQ(Count(html, "class=\"line2"), 2);
  EXPECT_EQ(Count(html, "class=\"dot2 mark\""), 2);
  EXPECT_THAT(html, Not(HasSubstr("nan")));
}

TEST(ChartTest, SquaresStandInTheMiddleOfTheirPoints) {
  Chart chart = TwoCurves();
  chart.series[1].style = ChartStyle::kSquares;
  const std::string html = RenderChart(chart);
  const std::regex square(
      "<rect class=\"dot2 mark\" x=\"([^\"]*)\" y=\"([^\"]*)\" width=\"([^\"]*)\"");
  std::smatch match;
  ASSERT_TRUE(std::regex_search(html, match, square));
  const double half = std::stod(match[3]) / 2;
  EXPECT_NEAR(std::stod(match[1]) + half, Line(html, 1)[0], 0.11);
  EXPECT_NEAR(std::stod(match[2]) + half, Line(html, 1)[1], 0.11);
}

TEST(ChartTest, TextIsEscaped) {
  Chart chart = TwoCurves();
  chart.description = "a < b & \"c\" > \x01";
  chart.series[0].label = "</svg><script>";
  chart.x.label = "<script>";
  const std::string escaped = "a &lt; b &amp; &quot;c&quot; &gt;  ";
  const std::string svg = RenderDocument(chart, chart.description, "<script>");
  EXPECT_THAT(svg, AllOf(HasSubstr("<title>" + escaped + "</title>"),
                         HasSubstr("<desc>" + escaped + "</desc>")));
  EXPECT_THAT(RenderChart(chart), HasSubstr("aria-label=\"" + escaped + "\""));
  for (const std::string& markup : {RenderChart(chart), svg}) {
    EXPECT_EQ(Malformed(markup), "");
    EXPECT_THAT(markup, Not(HasSubstr("<script")));
  }
}

TEST(ChartTest, TheSameChartGivesTheSameBytes) {
  EXPECT_EQ(RenderChart(TwoCurves()), RenderChart(TwoCurves()));
  EXPECT_EQ(Document(TwoCurves()), Document(TwoCurves()));
}

}  // namespace
}  // namespace softlookup::plot
