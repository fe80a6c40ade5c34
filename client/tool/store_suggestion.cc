#include "client/tool/store_suggestion.h"

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/nearest_name.h"
#include "client/cpp/status_macros.h"
#include "client/tool/exit_code.h"
#include "softlookup/client.h"
#include "softlookup/error_details.h"

namespace softlookup::tool {
namespace {

// Most names that the wire contract allows in one page. A suggestion is not worth a second call.
constexpr int kNamesMax = 1000;
constexpr absl::Duration kListDeadline = absl::Seconds(2);

// Returns the first kNamesMax names of stores that begin with the first character of `name`.
// Returns none if the server does not list them in time.
std::vector<std::string> NamesLike(const std::string& name, const Session& session) {
  std::vector<std::string> names;
  ClientOptions options;
  options.retry.attempts_max = 1;
  absl::StatusOr<Client> client = session.Connect(options);
  if (!client.ok()) return names;
  v1::ListStoresRequest request;
  request.set_prefix(name.substr(0, 1));
  request.set_page_size(kNamesMax);
  const auto page = client->ListStoresPage(request, {.deadline = kListDeadline});
  if (!page.ok()) return names;
  for (const v1::Store& store : page->stores()) names.push_back(store.name());
  return names;
}

}  // namespace

absl::Status WithNearestStore(const absl::Status& status, const Session& session) {
  if (ErrorReason(status) != "STORE_NOT_FOUND") return status;
  const auto metadata = ErrorMetadata(status);
  const auto name = metadata.find("store");
  if (name == metadata.end() || name->second.empty()) return status;
  const std::string suggestion = cli::Suggestion(name->second, NamesLike(name->second, session));
  return suggestion.empty() ? status : Annotate(status, suggestion.substr(2));
}

}  // namespace softlookup::tool
