#include "tests/integration/scrape.h"

#include <httplib.h>

#include <utility>

#include "absl/status/statusor.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {

MetricsText Scrape(const ServerProcess& server) {
  httplib::Client http("http://" + server.http_address());
  const httplib::Result answer = http.Get("/metrics");
  EXPECT_TRUE(answer && answer->status == 200);
  if (!answer) return {};
  EXPECT_EQ(answer->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  absl::StatusOr<MetricsText> metrics = ParseMetricsText(answer->body);
  EXPECT_THAT(metrics, IsOk());
  return metrics.ok() ? *std::move(metrics) : MetricsText();
}

double MetricOf(const ServerProcess& server, const std::string& sample) {
  return Scrape(server).Value(sample);
}

}  // namespace softlookup::testing
