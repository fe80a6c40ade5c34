#ifndef SOFTLOOKUP_SERVER_RPC_STATUS_H_
#define SOFTLOOKUP_SERVER_RPC_STATUS_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "softlookup/v1/lookup.pb.h"

namespace softlookup::server {

// Returns `text` as the message of an error may have it. Each byte that is not UTF-8 becomes "?". A
// text of more than 1,024 bytes is cut to at most 1,024, and "..." is appended.
std::string WireText(absl::string_view text);

// Converts `status` to a gRPC status. An error has `grpc-status-details-bin`: a google.rpc.Status
// with an ErrorInfo and, if `status` has a retry delay, a RetryInfo.
grpc::Status ToGrpcStatus(const absl::Status& status);

// As above, for the status that ends the call of `context`. If `status` has a retry delay, also
// adds the trailer grpc-retry-pushback-ms, for clients that do not read the details. Call this once
// per call, before the call ends.
grpc::Status ToGrpcStatus(const absl::Status& status, grpc::ServerContextBase& context);

// Converts back what ToGrpcStatus() has made, also in another process. A status without such
// details keeps its code and its message.
absl::Status FromGrpcStatus(const grpc::Status& status);

// Converts `status` to the error in a response of a lookup stream.
v1::LookupError ToLookupError(const absl::Status& status);

// The error of calls that the server ends or refuses because it is stopping.
absl::Status ShuttingDown();

// The error for bytes that are not a request of the method.
absl::Status MalformedMessage();

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_STATUS_H_
