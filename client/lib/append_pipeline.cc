#include "client/lib/append_pipeline.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace softlookup::client_internal {

bool FitsWindow(const AppendStreamOptions& options, std::size_t requests,
                std::int64_t requests_bytes, std::int64_t bytes) {
  if (requests == 0) return true;
  return requests < static_cast<std::size_t>(options.unacknowledged_requests_max) &&
         requests_bytes + bytes <= options.unacknowledged_bytes_max;
}

absl::Status WithProgress(const absl::Status& failure, const AppendSummary& acknowledged) {
  absl::Status annotated(failure.code(), absl::StrCat(failure.message(), " (rows acknowledged: ",
                                                      acknowledged.acknowledged_rows, ")"));
  failure.ForEachPayload([&](absl::string_view type_url, const absl::Cord& payload) {
    annotated.SetPayload(type_url, payload);
  });
  return annotated;
}

absl::Status EndedEarly() {
  return absl::InternalError("the server ended the stream before it answered every request");
}

}  // namespace softlookup::client_internal
