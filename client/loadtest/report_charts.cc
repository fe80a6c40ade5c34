#include "client/loadtest/report_charts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/output/figure_text.h"

namespace softlookup::loadtest {
namespace {

using output::CountText;
using output::NounText;
using output::PercentText;
using output::RateText;
using output::TimeText;
using plot::Chart;
using plot::ChartAxis;
using plot::ChartBound;
using plot::ChartNote;
using plot::ChartPoint;
using plot::ChartSeries;
using plot::ChartStyle;

constexpr double kLogSpread = 30;       // Latencies have a log axis if max / min is larger.
constexpr std::size_t kNotesMax = 400;  // More notes would be narrower than pixels.

// The unit in which an axis shows times: the largest unit in which the longest time is at least 1.
struct TimeUnit {
  const char* name;
  double seconds;
};

TimeUnit UnitFor(double seconds_max) {
  if (seconds_max >= 1) return {"s", 1};
  if (seconds_max >= 1e-3) return {"ms", 1e-3};
  return {"µs", 1e-6};
}

// Returns the y axis of latencies. Converts the series from seconds to the axis's unit, and
// `bound`, too, unless it is null.
ChartAxis LatencyAxis(std::vector<ChartSeries>* series, double* bound = nullptr) {
  double min = std::numeric_limits<double>::infinity(), max = 0;
  const auto count_in = [&](double seconds) {
    if (!std::isfinite(seconds)) return;
    min = std::min(min, seconds);
    max = std::max(max, seconds);
  };
  for (const ChartSeries& one : *series) {
    for (const ChartPoint& point : one.points) count_in(point.y);
  }
  if (bound != nullptr) count_in(*bound);
  const TimeUnit unit = UnitFor(max);
  for (ChartSeries& one : *series) {
    for (ChartPoint& point : one.points) point.y /= unit.seconds;
  }
  if (bound != nullptr) *bound /= unit.seconds;
  return {.label = absl::StrCat("latency, ", unit.name), .log = min > 0 && max / min > kLogSpread};
}

int ColorOf(const std::string& kind) {
  return kind == "append" ? 3 : kind == "rejected" ? 4 : kind == "lookup" ? 2 : 1;
}

// Returns the curve of latency by percentile. x is the number of nines: 0 at 0 %, 1 at 90 %, 2 at
// 99 %.
ChartSeries PercentileCurve(const LatencyHistogram& histogram) {
  constexpr double kStep = 0.02;
  const double last = std::min(5.0, std::log10(static_cast<double>(histogram.count())));
  ChartSeries curve;
  for (double x = 0; x < last + kStep; x += kStep) {
    const double nines = std::min(x, last);
    curve.points.push_back({nines, histogram.Percentile(100 * (1 - std::pow(10, -nines)))});
  }
  return curve;
}

// Returns the x axis of the charts over time.
ChartAxis TimeAxis(const std::vector<TimelinePoint>& timeline) {
  return {.label = "time, s", .reach = timeline.empty() ? 0 : timeline.back().end_s};
}

double Middle(const TimelinePoint& point) { return (point.begin_s + point.end_s) / 2; }

// Returns a note for each point of `timeline`; none if there are more than kNotesMax points.
std::vector<ChartNote> Notes(const std::vector<TimelinePoint>& timeline,
                             const std::function<std::string(const TimelinePoint&)>& text) {
  std::vector<ChartNote> notes;
  if (timeline.size() > kNotesMax) return notes;
  for (const TimelinePoint& point : timeline) {
    notes.push_back(
        {point.begin_s, point.end_s, absl::StrFormat("%.1f s: %s", Middle(point), text(point))});
  }
  return notes;
}

double PerSecond(std::uint64_t count, const TimelinePoint& point) {
  return count / std::max(1e-3, point.end_s - point.begin_s);
}

// Returns the timeline without the points after the measurement window.
std::vector<TimelinePoint> MeasuredPoints(const LoadResult& result) {
  std::vector<TimelinePoint> points;
  for (const TimelinePoint& point : result.timeline) {
    if (Middle(point) <= result.measured_s) points.push_back(point);
  }
  return points;
}

// Returns the objective for the 99th percentile, if there is one.
std::optional<ChartBound> P99Bound(const LoadReport& report) {
  const auto objectives = ParseObjectives(report.objectives);
  if (!objectives.ok()) return std::nullopt;
  for (const Condition& objective : *objectives) {
    if (objective.figure() == "p99") return ChartBound{objective.bound(), "objective"};
  }
  return std::nullopt;
}

}  // namespace

Chart PercentileChart(const Tally& tally) {
  Chart chart{.description = "Latency at each percentile"};
  double last = 1;
  const auto columns = LatencyColumns(tally);
  for (const auto& [kind, histogram] : columns) {
    if (kind == "all") continue;  // Its curve would lie beside that of the most frequent kind.
    ChartSeries curve = PercentileCurve(histogram);
    curve.label = kind;
    curve.color = columns.size() == 1 ? 1 : ColorOf(kind);
    last = std::max(last, curve.points.back().x);
    chart.series.push_back(std::move(curve));
  }
  chart.x.label = "per cent of the calls took at most";
  for (const double percent : {0.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999}) {
    const double nines = -std::log10(1 - percent / 100);
    if (nines <= last + 0.01) chart.x.ticks.push_back({nines, PercentText(percent)});
  }
  chart.y = LatencyAxis(&chart.series);
  return chart;
}

Chart LatencyOverTime(const LoadResult& result) {
  Chart chart{.description = "Median and 99th percentile of latency over time",
              .x = TimeAxis(result.timeline)};
  ChartSeries median{.label = "p50", .color = 1}, p99{.label = "p99", .color = 4};
  for (const TimelinePoint& point : result.timeline) {
    median.points.push_back({Middle(point), point.p50_s});
    p99.points.push_back({Middle(point), point.p99_s});
  }
  chart.series = {std::move(p99), std::move(median)};
  chart.y = LatencyAxis(&chart.series);
  chart.notes = Notes(result.timeline, [](const TimelinePoint& point) {
    return absl::StrCat("p50 ", TimeText(point.p50_s), ", p99 ", TimeText(point.p99_s));
  });
  return chart;
}

Chart ThroughputOverTime(const LoadResult& result) {
  const std::vector<TimelinePoint> points = MeasuredPoints(result);
  Chart chart{.description = "Calls a second over time",
              .x = TimeAxis(points),
              .y = {.label = "calls a second"}};
  ChartSeries ok{.label = "ended OK", .color = 1, .style = ChartStyle::kArea};
  for (const TimelinePoint& point : points) {
    ok.points.push_back({Middle(point), PerSecond(point.ok, point)});
  }
  if (result.options.rate.has_value() && !points.empty()) {
    chart.series.push_back(
        {.label = "offered",
         .color = 6,
         .style = ChartStyle::kDashed,
         .points = {{0, *result.options.rate}, {points.back().end_s, *result.options.rate}}});
  }
  chart.series.push_back(std::move(ok));
  chart.notes = Notes(points, [](const TimelinePoint& point) {
    return absl::StrCat(RateText(PerSecond(point.ok, point)), ", ", CountText(point.in_flight),
                        " in flight");
  });
  return chart;
}

Chart FailuresOverTime(const LoadResult& result) {
  struct Kind {
    const char* label;
    int color;
    std::uint64_t TimelinePoint::*count;
  };
  constexpr std::array<Kind, 3> kKinds = {{{"errors", 5, &TimelinePoint::errors},
                                           {"rejected", 4, &TimelinePoint::rejected},
                                           {"not sent", 3, &TimelinePoint::overflow}}};
  Chart chart{.description = "Calls a second that did not end OK, over time",
              .x = TimeAxis(result.timeline),
              .y = {.label = "calls a second"}};
  for (const Kind& kind : kKinds) {
    ChartSeries series{.label = kind.label, .color = kind.color};
    std::uint64_t sum = 0;
    for (const TimelinePoint& point : result.timeline) {
      sum += point.*kind.count;
      series.points.push_back({Middle(point), PerSecond(point.*kind.count, point)});
    }
    if (sum > 0) chart.series.push_back(std::move(series));
  }
  chart.notes = Notes(result.timeline, [](const TimelinePoint& point) {
    return absl::StrCat(CountText(point.errors), " ", NounText(point.errors, "error"), ", ",
                        CountText(point.rejected), " rejected, ", CountText(point.overflow),
                        " not sent");
  });
  return chart;
}

Chart SearchChart(const LoadReport& report) {
  Chart chart{.description = "99th percentile of latency at each rate that was tried",
              .x = {.label = "offered, calls a second"}};
  ChartSeries held{.label = "kept the objective", .color = 2, .style = ChartStyle::kDots};
  ChartSeries missed{.label = "did not", .color = 5, .style = ChartStyle::kRings};
  for (const FindMaxStep& step : report.search.steps) {
    const double p99 = step.result.tally.sum().latency.Percentile(99);
    (step.held ? held : missed).points.push_back({step.rate, p99});
    chart.x.reach = std::max(chart.x.reach, 1.04 * step.rate);
  }
  chart.series = {std::move(held), std::move(missed)};
  chart.bound = P99Bound(report);
  chart.y = LatencyAxis(&chart.series, chart.bound.has_value() ? &chart.bound->y : nullptr);
  chart.y.label = absl::StrCat("p99 ", chart.y.label);
  return chart;
}

}  // namespace softlookup::loadtest
