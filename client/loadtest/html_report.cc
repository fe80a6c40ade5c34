#include "client/loadtest/html_report.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "client/loadtest/report_charts.h"
#include "client/output/figure_text.h"
#include "client/output/xml_text.h"
#include "client/plot/chart.h"
#include "client/plot/chart_style.h"

namespace softlookup::loadtest {
namespace {

using output::CountText;
using output::PercentText;
using output::RateText;
using output::TimeText;
using output::XmlText;
using plot::Chart;
using plot::ChartPageStyle;
using plot::ChartPoint;
using plot::ChartSeries;
using plot::RenderChart;

constexpr char kPageStyle[] = R"css(
:root { color-scheme: light dark; --page: #f5f6f8; --card: #ffffff; --text: #1a2130; --faint: #5a6473;
  --line: #dfe3e9; --good: #0b6b3a; --good-bg: #e5f5ec; --bad: #a3122c; --bad-bg: #fdeaed;
  --warn: #854d0e; --warn-bg: #fdf3dc; }
@media (prefers-color-scheme: dark) {
  :root { --page: #0f1319; --card: #171c24; --text: #e8ecf2; --faint: #9ba6b5; --line: #2a323e;
    --good: #6fdc9f; --good-bg: #12291d; --bad: #ff8a9b; --bad-bg: #34151c; --warn: #f3c26b;
    --warn-bg: #2e2410; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 2.2rem 1.4rem 3rem; }
h1 { margin: .1rem 0 .35rem; font-size: 1.9rem; line-height: 1.2; letter-spacing: -.015em; }
h2 { margin: 0 0 .6rem; font-size: 1.02rem; letter-spacing: -.005em; }
.eyebrow { margin: 0; font-size: .78rem; font-weight: 600; letter-spacing: .09em;
  text-transform: uppercase; color: var(--faint); }
.sub { margin: 0; color: var(--faint); }
.verdicts { margin: 1.3rem 0 0; padding: 0; list-style: none; display: grid; gap: .5rem; }
.verdicts li { padding: .6rem .9rem; border-radius: 8px; }
.verdicts b { margin-right: .5rem; }
.good { color: var(--good); background: var(--good-bg); }
.bad { color: var(--bad); background: var(--bad-bg); }
.warn { color: var(--warn); background: var(--warn-bg); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(138px, 1fr)); gap: .9rem;
  margin: 1.3rem 0 .9rem; }
.card, .panel { background: var(--card); border: 1px solid var(--line); border-radius: 12px; }
.card { margin: 0; padding: .85rem 1rem .8rem; }
.card dt { font-size: .82rem; color: var(--faint); }
.card dd { margin: .1rem 0 0; font-size: 1.5rem; font-weight: 650; letter-spacing: -.02em;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
.card p { margin: .1rem 0 0; font-size: .8rem; color: var(--faint); }
.card.alarm dd { color: var(--bad); }
.panels { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .9rem; }
.panel { padding: 1.05rem 1.2rem 1rem; min-width: 0; }
.wide { grid-column: 1 / -1; }
.scroll { overflow-x: auto; }
.none { margin: 0; color: var(--faint); }
table { width: 100%; border-collapse: collapse; font-size: .9rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .34rem .8rem .34rem 0; text-align: left; border-bottom: 1px solid var(--line);
  vertical-align: top; }
tr:last-child th, tr:last-child td { border-bottom: 0; }
thead th { font-size: .8rem; font-weight: 600; color: var(--faint); white-space: nowrap; }
tbody th { font-weight: 500; }
.num { text-align: right; white-space: nowrap; }
.plain td, .plain th { padding-top: .25rem; padding-bottom: .25rem; }
.plain th { width: 42%; color: var(--faint); font-weight: 400; }
td { overflow-wrap: anywhere; }
footer { margin-top: 1.6rem; font-size: .84rem; color: var(--faint); max-width: 76ch; }
@media (max-width: 860px) { .panels { grid-template-columns: minmax(0, 1fr); } }
@media print { body { background: #fff; } .panel, .card { break-inside: avoid; } }
)css";

bool HasPoints(const std::vector<ChartSeries>& series) {
  for (const ChartSeries& one : series) {
    for (const ChartPoint& point : one.points) {
      if (std::isfinite(point.y)) return true;
    }
  }
  return false;
}

std::string Panel(const std::string& title, const std::string& content, bool wide = false) {
  return absl::StrCat("<section class=\"panel", wide ? " wide" : "", "\"><h2>", title, "</h2>\n",
                      content, "</section>\n");
}

std::string ChartPanel(const std::string& title, const Chart& chart) {
  if (!HasPoints(chart.series)) return Panel(title, "<p class=\"none\">Nothing to show.</p>\n");
  return Panel(title, RenderChart(chart));
}

std::string SearchTable(const LoadReport& report) {
  std::string html =
      "<div class=\"scroll\"><table><thead><tr><th class=\"num\">offered</th><th "
      "class=\"num\">ended OK</th><th class=\"num\">p50</th><th class=\"num\">p99</th>"
      "<th>result</th></tr></thead><tbody>\n";
  for (const FindMaxStep& step : report.search.steps) {
    const LatencyHistogram latency = step.result.tally.sum().latency;
    absl::StrAppendFormat(
        &html,
        "<tr><td class=\"num\">%s</td><td class=\"num\">%s</td><td class=\"num\">%s</td><td "
        "class=\"num\">%s</td><td>%s</td></tr>\n",
        RateText(step.rate), RateText(step.result.rate()), TimeText(latency.Percentile(50)),
        TimeText(latency.Percentile(99)), step.held ? "held" : XmlText(step.why));
  }
  return Panel("Rates tried, in this order", html + "</tbody></table></div>\n");
}

std::string LatencyTable(const Tally& tally) {
  const auto columns = LatencyColumns(tally);
  if (columns.empty()) return "";
  std::string html = "<div class=\"scroll\"><table><thead><tr><th></th>";
  for (const auto& [kind, histogram] : columns) {
    absl::StrAppend(&html, "<th class=\"num\">", kind, "</th>");
  }
  html += "</tr></thead><tbody>\n";
  const auto add = [&](const std::string& name, const auto& text) {
    absl::StrAppend(&html, "<tr><th>", name, "</th>");
    for (const auto& column : columns) {
      absl::StrAppend(&html, "<td class=\"num\">", text(column.second), "</td>");
    }
    html += "</tr>\n";
  };
  add("calls", [](const LatencyHistogram& h) { return CountText(h.count()); });
  add("mean", [](const LatencyHistogram& h) { return TimeText(h.mean()); });
  add("min", [](const LatencyHistogram& h) { return TimeText(h.min()); });
  for (const double percent : kPercentiles) {
    add(absl::StrCat("p", PercentText(percent)),
        [=](const LatencyHistogram& h) { return TimeText(h.Percentile(percent)); });
  }
  add("max", [](const LatencyHistogram& h) { return TimeText(h.max()); });
  return Panel("Latencies", html + "</tbody></table></div>\n");
}

std::string PlainTable(const std::vector<Parameter>& rows) {
  std::string html = "<table class=\"plain\"><tbody>\n";
  for (const Parameter& row : rows) {
    absl::StrAppend(&html, "<tr><th>", XmlText(row.name), "</th><td>", XmlText(row.value),
                    "</td></tr>\n");
  }
  return html + "</tbody></table>\n";
}

std::string CountsPanel(const LoadResult& result) {
  const Tally::OfMethod calls = result.tally.sum();
  std::vector<Parameter> rows = {{"errors", CountText(calls.errors())},
                                 {"rejected", CountText(calls.rejected)}};
  for (int code = 0; code < kCodeCount; ++code) {
    if (calls.codes[code] == 0) continue;
    const auto grpc_code = static_cast<grpc::StatusCode>(code);
    const auto message = result.messages.find(grpc_code);
    rows.push_back({NameOf(grpc_code),
                    message == result.messages.end()
                        ? CountText(calls.codes[code])
                        : absl::StrCat(CountText(calls.codes[code]), ": ", message->second)});
  }
  rows.push_back({"retries", CountText(result.tally.retries)});
  if (result.options.rate.has_value()) {
    rows.push_back({"due, but not sent", CountText(calls.overflow)});
    rows.push_back({"sent late by, p99", TimeText(result.tally.lateness.Percentile(99))});
  }
  rows.push_back({"client CPU", absl::StrFormat("%.2f of %.3g cores", result.client.cores_used,
                                                result.client.cores)});
  return Panel("Calls and client", PlainTable(rows));
}

std::string Card(const std::string& title, const std::string& figure, const std::string& below,
                 bool alarm = false) {
  return absl::StrCat("<dl class=\"card", alarm ? " alarm" : "", "\"><dt>", title, "</dt><dd>",
                      figure, "</dd><p>", below, "</p></dl>\n");
}

std::string Cards(const LoadReport& report) {
  const LoadResult& result = report.result;
  const Tally::OfMethod calls = result.tally.sum();
  const auto part = [&](std::uint64_t count) {
    const double due = calls.finished() + calls.overflow;
    return absl::StrFormat("%.3g %% of the calls", due == 0 ? 0 : 100 * count / due);
  };
  std::string html = "<div class=\"cards\">\n";
  absl::StrAppend(
      &html,
      Card("Throughput", RateText(result.rate()),
           absl::StrCat(RateText(result.offered_rate()),
                        result.options.rate.has_value() ? " were due" : " were sent")),
      Card("Median", TimeText(calls.latency.Percentile(50)),
           absl::StrCat("mean ", TimeText(calls.latency.mean()))),
      Card("99th percentile", TimeText(calls.latency.Percentile(99)),
           absl::StrCat("90th: ", TimeText(calls.latency.Percentile(90)))),
      Card("99.9th percentile", TimeText(calls.latency.Percentile(99.9)),
           absl::StrCat("largest: ", TimeText(calls.latency.max()))),
      Card("Errors", CountText(calls.errors()), part(calls.errors()), calls.errors() > 0));
  absl::StrAppend(&html, Card("Rejected", CountText(calls.rejected), part(calls.rejected)));
  if (report.verification.has_value()) {
    absl::StrAppend(&html, Card("Wrong answers", CountText(report.verification->wrong),
                                absl::StrCat("of ", report.verification->answers, " checked"),
                                report.verification->wrong > 0));
  }
  return html + "</div>\n";
}

// Returns a text such as "4,998 calls/s".
std::string CallRateText(double per_second) {
  return absl::StrCat(absl::StripSuffix(RateText(per_second), "/s"), " calls/s");
}

std::string Title(const LoadReport& report) {
  if (report.has_search()) {
    if (!report.search.best.has_value()) {
      return absl::StrCat("No rate found that keeps ", report.objectives);
    }
    return absl::StrCat("Highest rate that keeps ", report.objectives, ": ",
                        CallRateText(report.result.options.rate.value_or(0)));
  }
  return absl::StrCat(CallRateText(report.result.rate()), " with a 99th percentile of ",
                      TimeText(report.result.tally.sum().latency.Percentile(99)));
}

std::string Head(const LoadReport& report) {
  const LoadResult& result = report.result;
  return absl::StrCat(
      "<header><p class=\"eyebrow\">softlookup load test</p>\n<h1>", XmlText(Title(report)),
      "</h1>\n<p class=\"sub\">", XmlText(LoadText(result.options)), " · ",
      TimeText(result.measured_s), " measured", report.interrupted() ? " (interrupted)" : "", " · ",
      XmlText(report.server), " · ",
      absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", result.begin_time, absl::UTCTimeZone()),
      "</p></header>\n");
}

const char* WordOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kWrongAnswers:
      return "Wrong answers";
    case Verdict::kInterrupted:
      return "Ended early";
    case Verdict::kInvalid:
      return "Invalid";
    default:
      return "Failed";
  }
}

const char* StyleOf(Verdict verdict) {
  return verdict == Verdict::kInterrupted || verdict == Verdict::kInvalid ? "warn" : "bad";
}

std::string Verdicts(const LoadReport& report) {
  std::string html = "<ul class=\"verdicts\">\n";
  const auto add = [&](const char* style, const char* word, const std::string& text) {
    absl::StrAppend(&html, "<li class=\"", style, "\"><b>", word, "</b>", XmlText(text), "</li>\n");
  };
  const std::vector<Finding> findings = report.findings();
  for (const Finding& finding : findings) {
    add(StyleOf(finding.verdict), WordOf(finding.verdict), finding.text);
  }
  if (findings.empty()) add("good", "Valid", "the client kept up, so the figures are the server's");
  return html + "</ul>\n";
}

constexpr char kFooter[] =
    "<footer>Latency counts from when a call was due (open loop) or sent (closed loop) to its "
    "answer, and has the calls that ended OK or timed out. Percentiles are within 0.4 %. The time "
    "that is measured begins after ramp and warm-up. Over a chart, the pointer shows its "
    "figures.</footer>\n";

}  // namespace

std::string HtmlReport(const LoadReport& report) {
  const LoadResult& result = report.result;
  std::string panels = "<div class=\"panels\">\n";
  if (report.has_search()) {
    absl::StrAppend(&panels, ChartPanel("Search for the highest rate", SearchChart(report)),
                    SearchTable(report));
  }
  absl::StrAppend(&panels, ChartPanel("Latency by percentile", PercentileChart(result.tally)),
                  ChartPanel("Latency over time", LatencyOverTime(result)),
                  ChartPanel("Throughput over time", ThroughputOverTime(result)));
  // The page shows two panels in a row. Without failures, the panel of counts takes the place of
  // the chart of failures.
  const Chart failures = FailuresOverTime(result);
  const bool failed = !failures.series.empty();
  if (failed) {
    absl::StrAppend(&panels, ChartPanel("Errors and rejections over time", failures),
                    LatencyTable(result.tally), CountsPanel(result));
  } else {
    absl::StrAppend(&panels, CountsPanel(result), LatencyTable(result.tally));
  }
  absl::StrAppend(&panels, Panel("Parameters", PlainTable(report.parameters), failed), "</div>\n");
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"generator\" content=\"softlookup ",
      XmlText(report.version), "\"/>\n<title>softlookup load test: ", XmlText(Title(report)),
      "</title>\n<style>", kPageStyle, ChartPageStyle(), "</style>\n</head>\n<body>\n<main>\n",
      Head(report), Verdicts(report), Cards(report), panels, kFooter,
      "</main>\n</body>\n</html>\n");
}

}  // namespace softlookup::loadtest
