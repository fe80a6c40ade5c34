#ifndef SOFTLOOKUP_SERVER_ADMIN_ADMIN_PAGES_H_
#define SOFTLOOKUP_SERVER_ADMIN_ADMIN_PAGES_H_

#include <functional>
#include <string>
#include <utility>

namespace softlookup::server {

// The pages of the operator's HTTP port: /healthz (200 while the process runs), /readyz (200 while
// the server takes calls, else 503) and /metrics. GET and HEAD only. Thread-safe.
class AdminPages {
 public:
  // `is_ready` returns whether the server takes calls. `metrics` returns the text of /metrics, in
  // Prometheus' format. Both must be thread-safe.
  AdminPages(std::function<bool()> is_ready, std::function<std::string()> metrics)
      : is_ready_(std::move(is_ready)), metrics_(std::move(metrics)) {}

  // Returns the whole HTTP response to `request`.
  std::string Answer(const std::string& request) const;

 private:
  const std::function<bool()> is_ready_;
  const std::function<std::string()> metrics_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ADMIN_ADMIN_PAGES_H_
