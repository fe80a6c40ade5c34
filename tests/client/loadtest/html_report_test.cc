#include "client/loadtest/html_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <utility>

#include "tests/client/loadtest/sample_report.h"
#include "tests/client/malformed.h"

namespace softlookup::loadtest {
namespace {

using ::softlookup::testing::Malformed;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(HtmlReportTest, EveryPageIsWellFormed) {
  EXPECT_EQ(Malformed(HtmlReport(SampleReport())), "");
  EXPECT_EQ(Malformed(HtmlReport(FailedReport())), "");
  EXPECT_EQ(Malformed(HtmlReport(SearchReport())), "");
  EXPECT_EQ(Malformed(HtmlReport(LoadReport())), "") << "nothing was measured";
  EXPECT_NE(Malformed("<!DOCTYPE html><p><b></p></b>"), "");
  EXPECT_NE(Malformed("<!DOCTYPE html><p>a < b</p>"), "");
}

TEST(HtmlReportTest, APageNeedsNothingElse) {
  for (const LoadReport& report : {SampleReport(), FailedReport(), SearchReport()}) {
    EXPECT_THAT(HtmlReport(report),
                AllOf(Not(HasSubstr("http:")), Not(HasSubstr("https:")), Not(HasSubstr("src=")),
                      Not(HasSubstr("href=")), Not(HasSubstr("url(")), Not(HasSubstr("@import")),
                      Not(HasSubstr("<script")), Not(HasSubstr("<link"))));
  }
}

TEST(HtmlReportTest, WhatOthersSaidIsTextAndNeverMarkup) {
  EXPECT_THAT(HtmlReport(FailedReport()),
              HasSubstr("&lt;script&gt;alert(&quot;&amp;&quot;)&lt;/script&gt;"));
}

TEST(HtmlReportTest, HasTheFiguresTheChartsAndBothColourSchemes) {
  const std::string html = HtmlReport(SampleReport());
  for (const std::string text :
       {"Latency by percentile", "Latency over time", "Throughput over time", "latency, ms",
        "calls a second", "time, s", "100 calls/s with a 99th percentile of", ">p99.99<",
        "127.0.0.1:7471", ">poisson<", "0.25 of 2 cores", "prefers-color-scheme: dark"}) {
    EXPECT_THAT(html, HasSubstr(text));
  }
  EXPECT_THAT(html, AllOf(HasSubstr("Valid"), Not(HasSubstr("Errors and rejections over time"))));
}

TEST(HtmlReportTest, ShowsAllThatWentWrong) {
  const std::string html = HtmlReport(FailedReport());
  for (const std::string text :
       {"this client was late", "7 calls that were due were not sent", "values are off by 0.5",
        "p99&gt;20ms: p99 is", "Errors and rejections over time", "not sent",
        "QUEUE_FULL: come back later", "RESOURCE_EXHAUSTED"}) {
    EXPECT_THAT(html, HasSubstr(text));
  }
  EXPECT_THAT(html, Not(HasSubstr("p50&gt;10s")));
}

TEST(HtmlReportTest, OnlyAGoodTestIsCalledValid) {
  EXPECT_THAT(HtmlReport(SampleReport()), HasSubstr("<b>Valid</b>"));
  EXPECT_THAT(HtmlReport(SearchReport()), HasSubstr("<b>Valid</b>"));
  const auto says = [](const LoadReport& report, const std::string& text) {
    EXPECT_THAT(HtmlReport(report), AllOf(HasSubstr(text), Not(HasSubstr("<b>Valid</b>"))));
  };
  LoadReport report = SampleReport();
  report.result.invalid = {"7 calls that were due were not sent"};
  says(report, "<b>Invalid</b>7 calls that were due were not sent");
  report = SampleReport();
  for (auto& calls : report.result.tally.methods) {
    std::swap(calls.codes[grpc::StatusCode::OK], calls.codes[grpc::StatusCode::INTERNAL]);
  }
  report.result.messages[grpc::StatusCode::INTERNAL] = "broken";
  says(report, "<b>Failed</b>no call ended OK: broken");
  report = SampleReport();
  report.verification = Verification{.answers = 0, .unchecked = 3};
  says(report, "<b>Failed</b>--verify: no answer could be checked");
  report = SampleReport();
  report.result.interrupted = true;
  says(report, "<b>Ended early</b>");
  report = SearchReport();
  report.search.best.reset();
  says(report, "<b>Failed</b>no rate was found that keeps p99=900ms");
}

TEST(HtmlReportTest, ALineEndsWhereNothingWasMeasured) {
  // Two parts of each of the curves over time: before and after second 3.
  const std::string html = HtmlReport(SampleReport());
  const std::size_t begin = html.find("Latency over time");
  const std::string chart = html.substr(begin, html.find("</svg>", begin) - begin);
  const std::regex path("<path class=\"line");
  EXPECT_EQ(
      std::distance(std::sregex_iterator(chart.begin(), chart.end(), path), std::sregex_iterator()),
      4);
  EXPECT_THAT(html, Not(HasSubstr("nan")));
}

TEST(HtmlReportTest, ASearchShowsEveryStep) {
  const std::string html = HtmlReport(SearchReport());
  EXPECT_THAT(html, AllOf(HasSubstr("Highest rate that keeps p99=900ms: 100 calls/s"),
                          HasSubstr("Search for the highest rate"), HasSubstr(">objective<"),
                          HasSubstr("p99 is 2 s")));
}

}  // namespace
}  // namespace softlookup::loadtest
