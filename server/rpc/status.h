#ifndef SOFTLOOKUP_SERVER_RPC_STATUS_H_
#define SOFTLOOKUP_SERVER_RPC_STATUS_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "softlookup/v1/lookup.pb.h"

namespace softlookup::server {

// The status of a call, with `grpc-status-details-bin`: a google.rpc.Status that holds an ErrorInfo
// and, where waiting helps, a RetryInfo.
grpc::Status ToGrpcStatus(const absl::Status& status);

// The same, which is to end the call of `context`: where waiting helps, its trailer
// grpc-retry-pushback-ms says so to clients that know no details. Once a call, before it is ended.
grpc::Status ToGrpcStatus(const absl::Status& status, grpc::ServerContextBase& context);

// The same inside a stream's answer.
v1::LookupError ToLookupError(const absl::Status& status);

// What a stream hears that the server ends because it stops.
absl::Status ShuttingDown();

// What somebody hears whose bytes are not the method's request.
absl::Status MalformedMessage();

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_STATUS_H_
