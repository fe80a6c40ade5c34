#include "client/cpp/grpc_status.h"

#include "absl/strings/cord.h"
#include "google/rpc/status.pb.h"

namespace softlookup::client_internal {

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status details;
  if (details.ParseFromString(status.error_details())) {
    for (const auto& detail : details.details()) {
      result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
    }
  }
  return result;
}

}  // namespace softlookup::client_internal
