#include "client/cpp/append_pipeline.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/append_text.h"

namespace softlookup::client_internal {

bool FitsWindow(const AppendStreamOptions& options, std::size_t requests,
                std::int64_t requests_bytes, std::int64_t bytes) {
  if (requests == 0) return true;
  return requests < static_cast<std::size_t>(options.unacknowledged_requests_max) &&
         requests_bytes + bytes <= options.unacknowledged_bytes_max;
}

absl::Status CheckStore(const v1::AppendRequest& request, const std::string& store) {
  if (request.store().empty() || request.store() == store) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the request names the store \"", absl::CHexEscape(request.store()),
      "\", but the stream appends to \"", absl::CHexEscape(store), "\"; leave it empty"));
}

absl::Status WithProgress(const absl::Status& failure, const AppendSummary& acknowledged) {
  return AppendText(failure,
                    absl::StrCat(" (rows acknowledged: ", acknowledged.acknowledged_rows, ")"));
}

absl::Status EndedEarly() {
  return absl::InternalError("the server ended the stream before it answered every request");
}

}  // namespace softlookup::client_internal
