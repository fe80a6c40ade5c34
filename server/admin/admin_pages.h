#ifndef SOFTLOOKUP_SERVER_ADMIN_ADMIN_PAGES_H_
#define SOFTLOOKUP_SERVER_ADMIN_ADMIN_PAGES_H_

#include <atomic>
#include <functional>
#include <string>
#include <utility>

namespace softlookup::server {

// The pages of the operator's HTTP port: /healthz (200 while the process runs), /readyz (200 while
// the server takes calls, else 503) and /metrics. GET and HEAD only. Thread-safe.
class AdminPages {
 public:
  // `metrics` returns the text of /metrics, in Prometheus' format.
  explicit AdminPages(std::function<std::string()> metrics) : metrics_(std::move(metrics)) {}

  // Returns the whole HTTP response to `request`.
  std::string Answer(const std::string& request) const;

  // Sets what /readyz reports. At first: not ready.
  void set_ready(bool ready) { ready_.store(ready); }
  bool ready() const { return ready_.load(); }

 private:
  const std::function<std::string()> metrics_;
  std::atomic<bool> ready_{false};
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ADMIN_ADMIN_PAGES_H_
