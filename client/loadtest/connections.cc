#include "client/loadtest/connections.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace softlookup::loadtest {
namespace {

constexpr int kMessageBytesMax = 64 << 20;

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(kMessageBytesMax);
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  // Channels of equal arguments would otherwise share one connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

absl::StatusOr<Connections> Connections::Open(const std::string& address, int count,
                                              absl::Duration timeout) {
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < count; ++i) {
    channels.push_back(OpenChannel(address));
    channels.back()->GetState(/*try_to_connect=*/true);
  }
  const auto deadline = absl::ToChronoTime(absl::Now() + timeout);
  Connections connections;
  for (const auto& channel : channels) {
    if (!channel->WaitForConnected(deadline)) {
      return absl::UnavailableError(absl::StrCat("connection ", connections.size() + 1, " of ",
                                                 count, " was not made in time"));
    }
    connections.stubs_.push_back(std::make_unique<grpc::GenericStub>(channel));
  }
  return connections;
}

}  // namespace softlookup::loadtest
