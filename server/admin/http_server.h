#ifndef SOFTLOOKUP_SERVER_ADMIN_ADMIN_HTTP_H_
#define SOFTLOOKUP_SERVER_ADMIN_ADMIN_HTTP_H_

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "server/rpc/file_descriptor.h"

namespace softlookup::server {

// The operator's HTTP port: /healthz (200 while the process runs), /readyz (200 while the server
// takes calls, else 503) and /metrics. GET and HEAD only, one request per connection.
//
// One thread serves all connections and waits for none of them. So a slow client delays neither
// another client's answer nor the server's stop. The server closes a connection two seconds after
// it was accepted (kConnectionTime). It closes the oldest one early when there are too many, or
// when no descriptor is free.
class AdminHttp {
 public:
  // `clock` tells when a connection's time is up.
  explicit AdminHttp(const Clock& clock = Clock::Steady()) : clock_(clock) {}
  ~AdminHttp();  // Stops at once and closes all connections.
  AdminHttp(const AdminHttp&) = delete;
  AdminHttp& operator=(const AdminHttp&) = delete;

  // Binds `port` (0: any free one) at the first address of `host` that can be bound, and starts a
  // thread that serves. Call this once. UNAVAILABLE if no address can be bound, or if no descriptor
  // is free.
  absl::Status Start(const std::string& host, int port);
  int port() const { return port_; }

  // Sets what /readyz reports. Any thread may call this at any time.
  void set_ready(bool ready) { ready_.store(ready); }
  bool ready() const { return ready_.load(); }
  // Sets the function that returns the text of /metrics, in Prometheus' format. The thread that
  // serves all connections calls it, so it must be quick. Call this before Start().
  void set_metrics(std::function<std::string()> metrics) { metrics_ = std::move(metrics); }

 private:
  struct Connection {
    FileDescriptor socket;
    absl::Time end;         // When the server closes it.
    std::string request;    // The bytes received so far.
    std::string answer;     // The bytes of the response that are not sent yet.
    bool answered = false;  // The whole response is sent. Bytes that arrive later are dropped.
  };

  void Serve();
  // Accepts waiting connections, at most kAcceptsAtOnce. Closes the oldest open connection to make
  // room: when kConnectionsMax are open, or when accept() fails for lack of a descriptor or of
  // memory. Returns false if accept() fails for that lack while no connection is open, or for
  // another reason that may last. The thread then accepts no connection for up to kAcceptPause.
  bool Accept(std::vector<Connection>& connections);
  // Reads once, or writes, without waiting. Returns false if the connection is over.
  bool Proceed(Connection& connection);
  // Returns the whole HTTP response to `request`.
  std::string Answer(const std::string& request) const;

  const Clock& clock_;
  std::atomic<bool> ready_{false};
  std::function<std::string()> metrics_ = [] { return std::string(); };
  int port_ = 0;
  FileDescriptor listener_;
  FileDescriptor stop_;  // Readable once the thread must end.
  std::thread thread_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ADMIN_ADMIN_HTTP_H_
