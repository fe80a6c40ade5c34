#ifndef SOFTLOOKUP_CLIENT_CONSOLE_API_H_
#define SOFTLOOKUP_CLIENT_CONSOLE_API_H_

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/output/json.h"
#include "softlookup/client.h"

namespace softlookup::console {

// What the console's calls work with.
struct Backend {
  Client* client;
  std::string server;   // Its address, to show.
  std::string metrics;  // HOST:PORT of its /metrics.
  std::string version;  // Of the tool, to show.
  // Set once the console stops.
  const std::atomic<bool>* stopping;
};

// The calls of the console's pages. Each takes a JSON object, asks the server with a bounded number
// of calls, and returns a JSON object of bounded size. Thread-safe.
class Api {
 public:
  using Method = std::function<absl::StatusOr<output::Json>(const Backend&, const output::Json&)>;

  explicit Api(Backend backend);

  std::vector<std::string> names() const;
  // Returns {"result": ...} or {"error": {"code", "reason", "message", "retry_after_ms"}}. `name`
  // must be one of names().
  output::Json Call(const std::string& name, const output::Json& request) const;

 private:
  const Backend backend_;
  const std::map<std::string, Method> methods_;
};

}  // namespace softlookup::console

#endif  // SOFTLOOKUP_CLIENT_CONSOLE_API_H_
