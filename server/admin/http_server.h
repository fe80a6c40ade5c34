#ifndef SOFTLOOKUP_SERVER_ADMIN_HTTP_SERVER_H_
#define SOFTLOOKUP_SERVER_ADMIN_HTTP_SERVER_H_

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "server/base/file_descriptor.h"

namespace softlookup::server {

// Listens on `port` (0: any free one) at the first address of `host` that can be bound. UNAVAILABLE
// if there is none. Connections wait until HttpServer::Start() serves them.
absl::StatusOr<FileDescriptor> ListenForHttp(const std::string& host, int port);

// Serves HTTP connections, each with one request and one response. A given function makes the
// response, unless the request is too long.
//
// One thread serves all connections and waits for none of them. So a slow client delays neither
// another client's answer nor the server's stop. The server closes a connection two seconds after
// it was accepted (kConnectionTime). It closes the oldest one early when there are too many, or
// when no descriptor is free.
class HttpServer {
 public:
  // Returns the whole HTTP response to `request`, which has all its headers. The thread that serves
  // all connections calls it, so it must be quick.
  using Answer = std::function<std::string(const std::string& request)>;

  // `clock` tells when a connection's time is up.
  explicit HttpServer(Answer answer, const Clock& clock = Clock::Steady())
      : answer_(std::move(answer)), clock_(clock) {}
  ~HttpServer();  // Stops at once and closes all connections.
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Starts a thread that serves the connections of `listener`, which ListenForHttp() returned.
  // Connections that came before this call are served, too. Call this once. UNAVAILABLE if no
  // descriptor is free.
  absl::Status Start(FileDescriptor listener);
  int port() const { return port_; }

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
  // Reads at most once, then writes what the socket takes of the response. Does not wait. Returns
  // false if the connection is over.
  bool Proceed(Connection& connection);

  const Answer answer_;
  const Clock& clock_;
  int port_ = 0;
  FileDescriptor listener_;
  FileDescriptor stop_;  // Readable once the thread must end.
  std::thread thread_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ADMIN_HTTP_SERVER_H_
