#ifndef SOFTLOOKUP_TESTS_CLIENT_LOADTEST_SAMPLE_REPORT_H_
#define SOFTLOOKUP_TESTS_CLIENT_LOADTEST_SAMPLE_REPORT_H_

#include <chrono>
#include <limits>
#include <string>

#include "client/loadtest/load_report.h"

namespace softlookup::loadtest {

// What an open loop of 100/s could have come to in 10 s: 900 lookups of 1 to 900 ms and 100 appends
// of 5 ms; in second 3 nothing ended. Nothing failed.
inline LoadReport SampleReport() {
  LoadReport report;
  report.version = "1.2.3";
  report.server = "127.0.0.1:7471";
  report.parameters = {{"rate", "100"}, {"arrivals", "poisson"}, {"verify", "true"}};
  LoadResult& result = report.result;
  result.options.rate = 100;
  result.measured_s = 10;
  result.client = {.cores_used = 0.25, .cores = 2, .sender = 0.01};
  auto& lookups = result.tally.methods[0];
  for (int ms = 1; ms <= 900; ++ms) {
    lookups.latency.Record(std::chrono::milliseconds(ms));
    result.tally.lateness.Record(std::chrono::microseconds(40));
  }
  lookups.codes[grpc::StatusCode::OK] = 900;
  auto& appends = result.tally.methods[1];
  for (int i = 0; i < 100; ++i) appends.latency.Record(std::chrono::milliseconds(5));
  appends.codes[grpc::StatusCode::OK] = 100;
  result.tally.all_ok = result.tally.ok_meanwhile = 1000;
  for (int s = 0; s < 10; ++s) {
    const double none = std::numeric_limits<double>::quiet_NaN();
    result.timeline.push_back({.begin_s = s * 1.0,
                               .end_s = s + 1.0,
                               .ok = s == 3 ? 0u : 111u,
                               .in_flight = 5,
                               .p50_s = s == 3 ? none : 0.4,
                               .p99_s = s == 3 ? none : 0.9,
                               .lateness_p99_s = 4e-5});
  }
  return report;
}

// The same with everything that can go wrong.
inline LoadReport FailedReport() {
  LoadReport report = SampleReport();
  LoadResult& result = report.result;
  auto& lookups = result.tally.methods[0];
  lookups.codes[grpc::StatusCode::INTERNAL] = 3;
  lookups.codes[grpc::StatusCode::RESOURCE_EXHAUSTED] = 20;
  lookups.rejected = 20;
  lookups.overflow = 7;
  for (int i = 0; i < 20; ++i) result.tally.rejection.Record(std::chrono::milliseconds(2));
  result.messages[grpc::StatusCode::INTERNAL] = "<script>alert(\"&\")</script>";
  result.messages[grpc::StatusCode::RESOURCE_EXHAUSTED] = "QUEUE_FULL: come back later";
  result.timeline[5].errors = 3;
  result.timeline[6].rejected = 20;
  result.timeline[7].overflow = 7;
  result.invalid = {"this client was late", "7 calls that were due were not sent"};
  report.verification = Verification{.answers = 32,
                                     .wrong = 2,
                                     .unchecked = 1,
                                     .error_max = 0.5,
                                     .first_wrong = "values are off by 0.5"};
  report.fail_if = {*Condition::Parse("p99>20ms"), *Condition::Parse("p50>10s")};
  return report;
}

// A search with a step that held and one that did not.
inline LoadReport SearchReport() {
  LoadReport report = SampleReport();
  report.objectives = "p99=900ms";
  report.search.steps = {
      {.rate = 100, .held = true, .result = report.result},
      {.rate = 200, .held = false, .why = "p99 is 2 s", .result = report.result}};
  report.search.best = 0;
  return report;
}

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_TESTS_CLIENT_LOADTEST_SAMPLE_REPORT_H_
