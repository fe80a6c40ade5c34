#ifndef SOFTLOOKUP_CLIENT_CONSOLE_CONSOLE_SERVER_H_
#define SOFTLOOKUP_CLIENT_CONSOLE_CONSOLE_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/console/api.h"

namespace softlookup::console {

// The console over HTTP: the pages at GET /, and the calls of an Api at POST /api/NAME.
//
// It takes the browser for a stranger's tool. Every request needs a header Host that names the
// console. A call needs a header Origin that names it, too, a body of JSON of at most
// kBodyBytesMax, and the cookie and the key of a session (Access). The pages hold nothing secret,
// so they need no session.
class ConsoleServer {
 public:
  struct Options {
    std::string listen = "127.0.0.1:8471";  // HOST:PORT. Port 0 takes a free one.
    // Called with a new link after a browser has entered with the last one.
    std::function<void(const std::string& link)> on_entered = nullptr;
  };

  // Largest body of a call.
  static constexpr std::size_t kBodyBytesMax = std::size_t{1} << 20;

  // Opens the port. `api` must outlive the server. InvalidArgument if Options::listen does not name
  // one address and a port. Unavailable if the port cannot be opened.
  static absl::StatusOr<std::unique_ptr<ConsoleServer>> Open(const Options& options, Api* api);
  ~ConsoleServer();
  ConsoleServer(const ConsoleServer&) = delete;
  ConsoleServer& operator=(const ConsoleServer&) = delete;

  // Returns HOST:PORT, with the port that was opened.
  const std::string& address() const;
  // Returns the link that lets the next browser in.
  std::string link() const;

  // Serves until Stop(), and then ends the calls in progress.
  void Run();
  // May be called at any time, also before Run(), which then returns at once.
  void Stop();

 private:
  class Impl;
  explicit ConsoleServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace softlookup::console

#endif  // SOFTLOOKUP_CLIENT_CONSOLE_CONSOLE_SERVER_H_
