#include "client/loadtest/summary.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/terminal_text.h"
#include "client/output/figure_text.h"
#include "client/output/table.h"
#include "client/output/text_width.h"

namespace softlookup::loadtest {
namespace {

using cli::TerminalText;
using output::Align;
using output::CountText;
using output::PercentText;
using output::RateText;
using output::Table;
using output::TimeText;

void PrintHead(const LoadReport& report, std::ostream* out) {
  const LoadOptions& options = report.result.options;
  if (report.has_search()) {
    if (report.search.best.has_value()) {
      *out << "highest rate that keeps " << report.objectives << ": "
           << RateText(*report.result.options.rate) << "\n\n";
    } else {
      *out << "no rate was found that keeps " << report.objectives << "\n\n";
    }
  }
  *out << LoadText(options) << ", " << TimeText(report.result.measured_s) << " measured";
  if (report.result.interrupted) *out << " (interrupted)";
  *out << "\n\n";
}

void PrintLatencies(const Tally& tally, std::ostream* out) {
  const auto columns = LatencyColumns(tally);
  if (columns.empty()) return;
  std::vector<Table::Column> titles = {{"latency"}};
  for (const auto& [name, histogram] : columns) titles.push_back({name, Align::kRight});
  Table table(std::move(titles));
  const auto add = [&](const std::string& name, const auto& figure) {
    std::vector<std::string> cells = {name};
    for (const auto& column : columns) cells.push_back(TimeText(figure(column.second)));
    table.AddRow(std::move(cells));
  };
  add("mean", [](const LatencyHistogram& h) { return h.mean(); });
  add("min", [](const LatencyHistogram& h) { return h.min(); });
  for (const double percent : kPercentiles) {
    add(absl::StrCat("p", PercentText(percent)),
        [=](const LatencyHistogram& h) { return h.Percentile(percent); });
  }
  add("max", [](const LatencyHistogram& h) { return h.max(); });
  table.Print(out);
}

void PrintCounts(const LoadResult& result, std::ostream* out) {
  const Tally::OfMethod calls = result.tally.sum();
  Table table({{""}, {"", Align::kRight}, {""}});
  table.AddRow({"throughput", RateText(result.rate()),
                absl::StrCat("calls that ended OK; ", RateText(result.offered_rate()),
                             result.options.rate.has_value() ? " were due" : " were sent")});
  table.AddRow({"calls", CountText(calls.finished()), absl::StrCat(CountText(calls.ok()), " OK")});
  table.AddRow({"errors", CountText(calls.errors()), ""});
  table.AddRow({"rejected", CountText(calls.rejected), "turned away by the server"});
  if (result.options.attempts_max > 1) {
    table.AddRow({"retries", CountText(result.tally.retries), ""});
  }
  if (result.options.rate.has_value()) {
    table.AddRow({"overflow", CountText(calls.overflow),
                  absl::StrCat("due, but not sent: ", CountText(result.options.in_flight_max),
                               " were in flight")});
    table.AddRow({"sent late", TimeText(result.tally.lateness.Percentile(99)),
                  "by this client, 99th percentile"});
  }
  if (result.tally.all_unfinished > 0) {
    table.AddRow({"given up", CountText(result.tally.all_unfinished), "when interrupted"});
  }
  table.AddRow({"client CPU", absl::StrFormat("%.2f", result.client.cores_used),
                absl::StrFormat("of %.3g cores", result.client.cores)});
  table.Print(out);
}

void PrintMessages(const LoadResult& result, std::ostream* out) {
  const Tally::OfMethod calls = result.tally.sum();
  for (const auto& [code, message] : result.messages) {
    *out << "  " << NameOf(code) << " x " << CountText(calls.codes[code]) << ": "
         << TerminalText(message) << "\n";
  }
}

void PrintVerdicts(const LoadReport& report, std::ostream* out) {
  if (report.verification.has_value()) {
    const Verification& verified = *report.verification;
    *out << absl::StrFormat("verified: %s, %d wrong; largest error %.2g of the largest component",
                            output::Counted(verified.answers, "answer"), verified.wrong,
                            verified.error_max);
    if (verified.unchecked > 0) *out << "; " << verified.unchecked << " could not be checked";
    *out << "\n";
    if (verified.wrong > 0) *out << "WRONG: " << TerminalText(verified.first_wrong) << "\n";
  }
  for (const std::string& reason : report.invalid()) *out << "INVALID: " << reason << "\n";
  for (const Condition& condition : report.failed()) {
    *out << "FAILED: " << condition.text() << ": " << condition.Describe(report.result) << "\n";
  }
}

// Prints a line of cells. All cells but the last have a fixed width, because the contents of later
// lines are not known yet.
void PrintStepCells(const std::vector<std::string>& cells, std::ostream* out) {
  constexpr int kWidth = 10;
  std::string line;
  for (std::size_t c = 0; c + 1 < cells.size(); ++c) {
    const std::size_t width = output::TextWidth(cells[c]);
    if (width < kWidth) line.append(kWidth - width, ' ');
    line += cells[c];
  }
  *out << line << "  " << cells.back() << std::endl;
}

}  // namespace

void PrintSummary(const LoadReport& report, std::ostream* out) {
  PrintHead(report, out);
  PrintLatencies(report.result.tally, out);
  PrintCounts(report.result, out);
  PrintMessages(report.result, out);
  PrintVerdicts(report, out);
}

void PrintStepTitle(std::ostream* out) {
  PrintStepCells({"offered", "done", "p50", "p99", "p99.9", ""}, out);
}

void PrintStep(const FindMaxStep& step, std::ostream* out) {
  const LatencyHistogram latency = step.result.tally.sum().latency;
  PrintStepCells(
      {RateText(step.rate), RateText(step.result.rate()), TimeText(latency.Percentile(50)),
       TimeText(latency.Percentile(99)), TimeText(latency.Percentile(99.9)),
       step.held ? "held" : absl::StrCat("missed: ", TerminalText(step.why))},
      out);
}

}  // namespace softlookup::loadtest
