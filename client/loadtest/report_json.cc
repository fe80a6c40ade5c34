#include "client/loadtest/report_json.h"

#include <cmath>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/output/figure_text.h"

namespace softlookup::loadtest {
namespace {

using output::Json;
using output::PercentText;

Json Milliseconds(double seconds) {
  if (!std::isfinite(seconds)) return nullptr;
  return std::round(seconds * 1e9) / 1e6;
}

Json Latency(const LatencyHistogram& histogram) {
  Json json;
  json["count"] = histogram.count();
  json["mean"] = Milliseconds(histogram.mean());
  json["min"] = Milliseconds(histogram.min());
  for (const double percent : kPercentiles) {
    json[absl::StrCat("p", PercentText(percent))] = Milliseconds(histogram.Percentile(percent));
  }
  json["max"] = Milliseconds(histogram.max());
  return json;
}

Json Calls(const Tally::OfMethod& calls) {
  Json json;
  json["finished"] = calls.finished();
  json["ok"] = calls.ok();
  json["errors"] = calls.errors();
  json["rejected"] = calls.rejected;
  json["overflow"] = calls.overflow;
  json["codes"] = Json::object();
  for (int code = 0; code < kCodeCount; ++code) {
    if (calls.codes[code] == 0) continue;
    json["codes"][NameOf(static_cast<grpc::StatusCode>(code))] = calls.codes[code];
  }
  json["latency_ms"] = Latency(calls.latency);
  return json;
}

Json Timeline(const std::vector<TimelinePoint>& timeline) {
  Json json = Json::array();
  for (const TimelinePoint& point : timeline) {
    json.push_back({{"begin_s", point.begin_s},
                    {"end_s", point.end_s},
                    {"ok", point.ok},
                    {"errors", point.errors},
                    {"rejected", point.rejected},
                    {"overflow", point.overflow},
                    {"in_flight", point.in_flight},
                    {"p50_ms", Milliseconds(point.p50_s)},
                    {"p99_ms", Milliseconds(point.p99_s)},
                    {"late_p99_ms", Milliseconds(point.lateness_p99_s)}});
  }
  return json;
}

Json Result(const LoadResult& result) {
  Json json;
  json["begin"] = absl::FormatTime(absl::RFC3339_sec, result.begin_time, absl::UTCTimeZone());
  json["measured_s"] = result.measured_s;
  json["interrupted"] = result.interrupted;
  json["rate"] = result.rate();
  json["offered_rate"] = result.offered_rate();
  json["calls"] = Calls(result.tally.sum());
  // List every method, even one without calls, so that scripts find the same members in every
  // report.
  for (std::size_t m = 0; m < kMethodCount; ++m) {
    json["methods"][kMethodNames[m]] = Calls(result.tally.methods[m]);
  }
  json["rejection_ms"] = Latency(result.tally.rejection);
  if (result.options.rate.has_value()) json["late_ms"] = Latency(result.tally.lateness);
  json["retries"] = result.tally.retries;
  json["given_up"] = result.tally.all_unfinished;
  json["first_messages"] = Json::object();
  for (const auto& [code, message] : result.messages) {
    json["first_messages"][NameOf(code)] = message;
  }
  json["client"] = {{"cores_used", result.client.cores_used},
                    {"cores", result.client.cores},
                    {"sender", result.client.sender}};
  return json;
}

Json Search(const LoadReport& report) {
  Json json;
  json["objectives"] = report.objectives;
  json["rate"] = report.search.best.has_value()
                     ? Json(report.search.steps[*report.search.best].rate)
                     : Json(nullptr);
  json["limited_by_client"] = report.search.limited_by_client;
  json["steps"] = Json::array();
  for (const FindMaxStep& step : report.search.steps) {
    Json one = {{"rate", step.rate}, {"held", step.held}, {"why", step.why}};
    one.update(Result(step.result));
    // Result() also sets "rate", to the rate of calls that ended OK. In a step, "rate" is the
    // offered rate.
    one["rate"] = step.rate;
    one["ok_rate"] = step.result.rate();
    json["steps"].push_back(std::move(one));
  }
  return json;
}

Json ParameterValue(const std::string& text) {
  double number;
  if (text == "true" || text == "false") return text == "true";
  if (!absl::SimpleAtod(text, &number) || !std::isfinite(number)) return text;
  std::int64_t integer;
  if (absl::SimpleAtoi(text, &integer)) return integer;
  return number;
}

}  // namespace

Json ReportJson(const LoadReport& report) {
  Json json;
  json["version"] = report.version;
  json["server"] = report.server;
  json["parameters"] = Json::object();
  for (const Parameter& parameter : report.parameters) {
    json["parameters"][parameter.name] = ParameterValue(parameter.value);
  }
  json["verdict"] = NameOf(report.verdict());
  json["valid"] = report.invalid().empty();
  json["invalid"] = report.invalid();
  json["failed"] = Json::array();
  for (const Condition& condition : report.failed()) {
    json["failed"].push_back(
        {{"condition", condition.text()}, {"found", condition.Describe(report.result)}});
  }
  if (report.verification.has_value()) {
    const Verification& verified = *report.verification;
    json["verification"] = {{"answers", verified.answers},
                            {"wrong", verified.wrong},
                            {"unchecked", verified.unchecked},
                            {"error_max", verified.error_max},
                            {"first_wrong", verified.first_wrong}};
  }
  if (report.has_search()) json["find_max"] = Search(report);
  json.update(Result(report.result));
  json["timeline"] = Timeline(report.result.timeline);
  return json;
}

}  // namespace softlookup::loadtest
