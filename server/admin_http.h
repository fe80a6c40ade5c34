#ifndef SOFTLOOKUP_SERVER_ADMIN_HTTP_H_
#define SOFTLOOKUP_SERVER_ADMIN_HTTP_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"

namespace softlookup::server {

// The operator's HTTP port: /healthz (200 while the process runs) and /readyz (200 while it takes
// calls, else 503).
class AdminHttp {
 public:
  AdminHttp();
  ~AdminHttp();  // Stops serving.

  // Binds `host`:`port` (0: any free one) and serves on threads of its own.
  absl::Status Start(const std::string& host, int port);
  int port() const;

  void set_ready(bool ready) { ready_.store(ready); }

 private:
  struct Server;

  std::atomic<bool> ready_{false};
  std::unique_ptr<Server> server_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ADMIN_HTTP_H_
