#ifndef SOFTLOOKUP_CLIENT_CPP_CHANNEL_H_
#define SOFTLOOKUP_CLIENT_CPP_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>

#include "softlookup/credentials.h"

namespace softlookup::client_internal {

// Creates a channel to `address`, with TLS if `credentials` ask for it. Does not connect it. Adds
// to `arguments` the arguments that all channels of this library need.
//
// The channel does not send the token, because gRPC sends a channel's call credentials over TLS
// only. BearerToken adds the token to each call instead.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address,
                                           const Credentials& credentials, int message_bytes_max,
                                           grpc::ChannelArguments arguments);

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_CHANNEL_H_
