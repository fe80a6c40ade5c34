#include "client/console/server_calls.h"

#include <httplib.h>

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cpp/status_macros.h"

namespace softlookup::console {
namespace {

using output::Json;

constexpr absl::Duration kHealthDeadline = absl::Seconds(2);
constexpr time_t kMetricsTimeoutSeconds = 2;
constexpr absl::Duration kMetricsDeadline = absl::Seconds(10);
constexpr std::size_t kMetricsBytesMax = std::size_t{4} << 20;

}  // namespace

absl::StatusOr<Json> About(const Backend& backend, const Json&) {
  return Json{
      {"server", backend.server}, {"metrics", backend.metrics}, {"version", backend.version}};
}

absl::StatusOr<Json> Health(const Backend& backend, const Json&) {
  constexpr std::array<const char*, 4> kNames = {"unknown", "serving", "not serving",
                                                 "service unknown"};
  CLIENT_ASSIGN_OR_RETURN(const ServingStatus serving,
                          backend.client->Health({}, {.deadline = kHealthDeadline}));
  return Json{{"status", kNames[static_cast<std::size_t>(serving)]}};
}

absl::StatusOr<Json> ReadMetrics(const Backend& backend, const Json&) {
  const auto refuse = [&](const std::string& why) {
    return absl::UnavailableError(
        absl::StrCat("no metrics from http://", backend.metrics, "/metrics: ", why,
                     "; softlookup console --metrics HOST:PORT names the server's --http-listen"));
  };
  httplib::Client http("http://" + backend.metrics);
  if (!http.is_valid()) return refuse("that is no address");
  http.set_connection_timeout(kMetricsTimeoutSeconds);
  http.set_read_timeout(kMetricsTimeoutSeconds);
  const absl::Time deadline =
      absl::Now() + kMetricsDeadline;  // The timeouts are those of one read.
  std::string text;
  const httplib::Result result = http.Get("/metrics", [&](const char* data, std::size_t size) {
    text.append(data, size);
    return text.size() <= kMetricsBytesMax && absl::Now() < deadline && !*backend.stopping;
  });
  if (!result) return refuse(httplib::to_string(result.error()));
  if (result->status != 200) return refuse(absl::StrCat("status ", result->status));
  return Json{{"text", std::move(text)}};
}

absl::StatusOr<Json> ListBackups(const Backend& backend, const Json&) {
  CLIENT_ASSIGN_OR_RETURN(const auto backups, backend.client->ListBackups());
  Json list = Json::array();
  for (const admin::v1::Backup& backup : backups) {
    list.push_back({{"name", backup.name()},
                    {"create_seconds", backup.create_time().seconds()},
                    {"byte_size", backup.byte_size()}});
  }
  return Json{{"backups", std::move(list)}};
}

}  // namespace softlookup::console
