#ifndef SOFTLOOKUP_CLIENT_CPP_GRPC_STATUS_H_
#define SOFTLOOKUP_CLIENT_CPP_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace softlookup::client_internal {

// The same code and message; every detail of `grpc-status-details-bin` becomes a payload under its
// type URL. Details that do not parse are dropped.
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_GRPC_STATUS_H_
