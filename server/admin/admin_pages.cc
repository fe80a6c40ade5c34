#include "server/admin/admin_pages.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "server/admin/http_response.h"

namespace softlookup::server {
namespace {

constexpr absl::string_view kMetricsText = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace

std::string AdminPages::Answer(const std::string& request) const {
  const absl::string_view line = *absl::StrSplit(request, absl::ByAnyChar("\r\n")).begin();
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != 3 || !absl::StartsWith(words[2], "HTTP/1.")) {
    return HttpResponse("400 Bad Request", "not an HTTP/1.1 request\n");
  }
  const bool get = words[0] == "GET";
  if (!get && words[0] != "HEAD") {
    return HttpResponse("405 Method Not Allowed\r\nAllow: GET, HEAD", "GET and HEAD only\n");
  }
  const absl::string_view path = *absl::StrSplit(words[1], '?').begin();
  if (path == "/healthz") return HttpResponse("200 OK", "ok\n", get);
  if (path == "/readyz") {
    return is_ready_() ? HttpResponse("200 OK", "ready\n", get)
                       : HttpResponse("503 Service Unavailable", "not ready\n", get);
  }
  if (path == "/metrics") return HttpResponse("200 OK", metrics_(), get, kMetricsText);
  return HttpResponse("404 Not Found", "there are /healthz, /readyz and /metrics\n", get);
}

}  // namespace softlookup::server
