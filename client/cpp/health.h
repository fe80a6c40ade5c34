#ifndef SOFTLOOKUP_CLIENT_CPP_HEALTH_H_
#define SOFTLOOKUP_CLIENT_CPP_HEALTH_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <memory>
#include <string_view>

#include "softlookup/client.h"

namespace softlookup::client_internal {

// Calls grpc.health.v1.Health/Check once, and sets `serving` if it succeeds. Blocks. INTERNAL if
// the answer does not parse.
//
// Needs no generated code for the request and the answer, because a distribution's gRPC may lack
// it. Each message has one field, which is written or read as an unknown field.
grpc::Status CheckHealth(const std::shared_ptr<grpc::ChannelInterface>& channel,
                         grpc::ClientContext* context, std::string_view service,
                         ServingStatus* serving);

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_HEALTH_H_
