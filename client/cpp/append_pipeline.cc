#include "client/cpp/append_pipeline.h"

#include "absl/strings/str_cat.h"
#include "client/cpp/append_text.h"

namespace softlookup::client_internal {

bool FitsWindow(const AppendStreamOptions& options, std::size_t requests,
                std::int64_t requests_bytes, std::int64_t bytes) {
  if (requests == 0) return true;
  return requests < static_cast<std::size_t>(options.unacknowledged_requests_max) &&
         requests_bytes + bytes <= options.unacknowledged_bytes_max;
}

absl::Status WithProgress(const absl::Status& failure, const AppendSummary& acknowledged) {
  return AppendText(failure,
                    absl::StrCat(" (rows acknowledged: ", acknowledged.acknowledged_rows, ")"));
}

absl::Status EndedEarly() {
  return absl::InternalError("the server ended the stream before it answered every request");
}

}  // namespace softlookup::client_internal
