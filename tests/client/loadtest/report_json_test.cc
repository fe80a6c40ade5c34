#include "client/loadtest/report_json.h"

#include <gtest/gtest.h>

#include "tests/client/loadtest/sample_report.h"

namespace softlookup::loadtest {
namespace {

using output::Json;

TEST(ReportJsonTest, HasEveryFigure) {
  const Json json = ReportJson(SampleReport());
  EXPECT_EQ(json["version"], "1.2.3");
  EXPECT_EQ(json["server"], "127.0.0.1:7471");
  EXPECT_EQ(json["parameters"]["rate"], 100);
  EXPECT_EQ(json["parameters"]["arrivals"], "poisson");
  EXPECT_EQ(json["parameters"]["verify"], true);
  EXPECT_EQ(json["verdict"], "good");
  EXPECT_EQ(json["valid"], true);
  EXPECT_EQ(json["rate"], 100);
  EXPECT_EQ(json["calls"]["ok"], 1000);
  EXPECT_EQ(json["calls"]["codes"]["OK"], 1000);
  EXPECT_EQ(json["methods"]["append"]["ok"], 100);
  EXPECT_NEAR(json["methods"]["append"]["latency_ms"]["p50"].get<double>(), 5, 0.05);
  const Json& latency = json["methods"]["lookup"]["latency_ms"];
  EXPECT_EQ(latency["min"], 1);
  EXPECT_EQ(latency["max"], 900);
  EXPECT_EQ(latency["mean"], 450.5);
  EXPECT_NEAR(latency["p90"].get<double>(), 810, 8);
  EXPECT_NEAR(latency["p99.99"].get<double>(), 900, 9);
  EXPECT_NEAR(json["late_ms"]["p99"].get<double>(), 0.04, 0.0004);
  ASSERT_EQ(json["timeline"].size(), 10u);
  EXPECT_EQ(json["timeline"][4]["ok"], 111);
  EXPECT_EQ(json["timeline"][3]["p99_ms"], nullptr);
  EXPECT_FALSE(json.contains("verification"));
  EXPECT_FALSE(json.contains("find_max"));
}

TEST(ReportJsonTest, HasAllThatWentWrong) {
  const Json json = ReportJson(FailedReport());
  EXPECT_EQ(json["verdict"], "wrong_answers");
  EXPECT_EQ(json["valid"], false);
  EXPECT_EQ(json["invalid"][0], "this client was late");
  EXPECT_EQ(json["calls"]["errors"], 3);
  EXPECT_EQ(json["calls"]["rejected"], 20);
  EXPECT_EQ(json["calls"]["overflow"], 7);
  EXPECT_EQ(json["calls"]["codes"]["RESOURCE_EXHAUSTED"], 20);
  EXPECT_NEAR(json["rejection_ms"]["p99"].get<double>(), 2, 0.02);
  EXPECT_EQ(json["first_messages"]["RESOURCE_EXHAUSTED"], "QUEUE_FULL: come back later");
  EXPECT_EQ(json["verification"]["wrong"], 2);
  ASSERT_EQ(json["failed"].size(), 1u);
  EXPECT_EQ(json["failed"][0]["condition"], "p99>20ms");
}

TEST(ReportJsonTest, HasAMethodThatWasNeverCalled) {
  LoadReport report = SampleReport();
  report.result.tally.methods[1] = {};
  const Json appends = ReportJson(report)["methods"]["append"];
  EXPECT_EQ(appends["ok"], 0);
  EXPECT_EQ(appends["errors"], 0);
}

TEST(ReportJsonTest, HasTheStepsOfASearch) {
  const Json search = ReportJson(SearchReport())["find_max"];
  EXPECT_EQ(search["rate"], 100);
  ASSERT_EQ(search["steps"].size(), 2u);
  EXPECT_EQ(search["steps"][0]["held"], true);
  EXPECT_EQ(search["steps"][1]["rate"], 200);
  EXPECT_EQ(search["steps"][1]["why"], "p99 is 2 s");
  EXPECT_EQ(search["steps"][1]["calls"]["ok"], 1000);
}

}  // namespace
}  // namespace softlookup::loadtest
