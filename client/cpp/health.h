#ifndef SOFTLOOKUP_CLIENT_CPP_HEALTH_H_
#define SOFTLOOKUP_CLIENT_CPP_HEALTH_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <memory>
#include <string_view>

#include "softlookup/client.h"

namespace softlookup::client_internal {

// One call of grpc.health.v1.Health/Check. Its two messages have one field each and no distribution
// is sure to package their generated code, so they are read and written as unknown fields.
grpc::Status CheckHealth(const std::shared_ptr<grpc::Channel>& channel,
                         grpc::ClientContext* context, std::string_view service,
                         ServingStatus* serving);

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_HEALTH_H_
