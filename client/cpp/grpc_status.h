#ifndef SOFTLOOKUP_CLIENT_CPP_GRPC_STATUS_H_
#define SOFTLOOKUP_CLIENT_CPP_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace softlookup::client_internal {

// Returns a status of the same code and message. Every detail in `grpc-status-details-bin` becomes
// a payload under its type URL, unless the details do not parse.
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_GRPC_STATUS_H_
