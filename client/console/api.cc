#include "client/console/api.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/console/attention_calls.h"
#include "client/console/lookup_calls.h"
#include "client/console/memory_calls.h"
#include "client/console/server_calls.h"
#include "client/console/store_calls.h"
#include "softlookup/error_details.h"

namespace softlookup::console {

using output::Json;

Api::Api(Backend backend)
    : backend_(std::move(backend)),
      methods_({{"about", About},
                {"attention", Attention},
                {"backups", ListBackups},
                {"health", Health},
                {"labels", ReadLabels},
                {"lookup", Lookup},
                {"mass", MassByPosition},
                {"memory", ReadMemory},
                {"metrics", ReadMetrics},
                {"posner", Posner},
                {"query", MakeQuery},
                {"rows", ReadRows},
                {"store", GetStore},
                {"stores", ListStores}}) {}

std::vector<std::string> Api::names() const {
  std::vector<std::string> names;
  for (const auto& [name, method] : methods_) names.push_back(name);
  return names;
}

Json Api::Call(const std::string& name, const Json& request) const {
  absl::StatusOr<Json> result = methods_.at(name)(backend_, request);
  if (result.ok()) return {{"result", *std::move(result)}};
  const absl::Status& status = result.status();
  Json error = {{"code", absl::StatusCodeToString(status.code())},
                {"reason", ErrorReason(status)},
                {"message", std::string(status.message())}};
  if (const auto delay = RetryDelay(status); delay.has_value()) {
    error["retry_after_ms"] = absl::ToInt64Milliseconds(*delay);
  }
  return {{"error", std::move(error)}};
}

}  // namespace softlookup::console
