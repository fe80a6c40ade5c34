#ifndef SOFTLOOKUP_CLIENT_CPP_CHANNEL_H_
#define SOFTLOOKUP_CLIENT_CPP_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>

#include "softlookup/credentials.h"

namespace softlookup::client_internal {

// Makes a channel to `address`, with TLS if `credentials` ask for it, and does not connect it yet.
// Sets what every channel of a client has in common; `arguments` are the rest.
//
// The token is not the channel's: gRPC sends its call credentials over TLS only. See BearerToken.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address,
                                           const Credentials& credentials, int message_bytes_max,
                                           grpc::ChannelArguments arguments);

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_CHANNEL_H_
