#include "client/loadtest/connections.h"

#include <grpcpp/support/channel_arguments.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/address.h"
#include "client/cpp/channel.h"
#include "client/cpp/status_macros.h"

namespace softlookup::loadtest {
namespace {

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address,
                                           const Credentials& credentials) {
  grpc::ChannelArguments arguments;
  // Without this, channels with equal arguments would share one connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return client_internal::OpenChannel(address, credentials, kMessageBytesMax, arguments);
}

}  // namespace

absl::StatusOr<Connections> Connections::Open(const std::string& address, int count,
                                              absl::Duration timeout,
                                              const Credentials& credentials) {
  CLIENT_RETURN_IF_ERROR(client_internal::CheckAddress(address));
  CLIENT_RETURN_IF_ERROR(ValidateCredentials(credentials));
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < count; ++i) {
    channels.push_back(OpenChannel(address, credentials));
    channels.back()->GetState(/*try_to_connect=*/true);
  }
  const auto deadline = absl::ToChronoTime(absl::Now() + timeout);
  Connections connections{client_internal::BearerToken(credentials.token)};
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
