#ifndef SOFTLOOKUP_SERVER_ADMIN_ADMIN_HTTP_H_
#define SOFTLOOKUP_SERVER_ADMIN_ADMIN_HTTP_H_

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/rpc/file_descriptor.h"

namespace softlookup::server {

// The operator's HTTP port: /healthz (200 while the process runs), /readyz (200 while it takes
// calls, else 503) and /metrics. GET and HEAD only, one request a connection.
//
// One thread serves every connection and waits for none of them, so that no client, however slow,
// keeps another from its answer or the server from stopping. A connection is cut when its time is
// up, or when it is the oldest of too many.
class AdminHttp {
 public:
  AdminHttp() = default;
  ~AdminHttp();  // Stops serving, at once.
  AdminHttp(const AdminHttp&) = delete;
  AdminHttp& operator=(const AdminHttp&) = delete;

  // Binds `host`:`port` (0: any free one) and serves on a thread of its own. UNAVAILABLE if it
  // cannot listen there.
  absl::Status Start(const std::string& host, int port);
  int port() const { return port_; }

  void set_ready(bool ready) { ready_.store(ready); }
  bool ready() const { return ready_.load(); }
  // What /metrics answers, in Prometheus' text format. It is made on the thread that serves all
  // connections, so it must be quick. Before Start.
  void set_metrics(std::function<std::string()> metrics) { metrics_ = std::move(metrics); }

 private:
  struct Connection {
    FileDescriptor socket;
    absl::Time end;         // When it is cut.
    std::string request;    // What came of it, up to its blank line.
    std::string answer;     // What is left to send of it.
    bool answered = false;  // The rest of what comes is thrown away.
  };

  void Serve();
  // False if the process is out of descriptors.
  bool Accept(std::vector<Connection>& connections);
  // Reads and writes what can be without waiting; false once the connection is over.
  bool Proceed(Connection& connection);
  std::string Answer(const std::string& request) const;

  std::atomic<bool> ready_{false};
  std::function<std::string()> metrics_ = [] { return std::string(); };
  int port_ = 0;
  FileDescriptor listener_;
  FileDescriptor stop_;  // Readable once the thread must end.
  std::thread thread_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ADMIN_ADMIN_HTTP_H_
