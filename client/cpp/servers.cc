#include "client/cpp/servers.h"

#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "client/cpp/address.h"
#include "client/cpp/channel.h"
#include "softlookup/error_details.h"

namespace softlookup::client_internal {
namespace {

// Longest wait for a connection to one of several servers before the next one is tried, too. It
// bounds what a machine that does not answer costs.
constexpr absl::Duration kServerWait = absl::Seconds(1);

// Longest wait for one channel while another one could become connected.
constexpr absl::Duration kTurn = absl::Milliseconds(10);

// Longest wait between two attempts to connect. Short, because a server that restarts is back
// soon, and because an attempt costs almost nothing.
constexpr absl::Duration kReconnectBackoffMax = absl::Milliseconds(500);

int Milliseconds(absl::Duration duration) {
  const absl::Duration most = absl::Milliseconds(std::numeric_limits<int>::max());
  return static_cast<int>(absl::ToInt64Milliseconds(std::min(duration, most)));
}

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address,
                                           const ClientOptions& options) {
  grpc::ChannelArguments arguments;
  // Clients of one process would otherwise share a connection, and its limit on calls.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options.keepalive_interval));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(options.keepalive_timeout));
  arguments.SetInt(
      GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
      std::max(100, Milliseconds(std::min(options.retry.backoff_max, kReconnectBackoffMax))));
  return client_internal::OpenChannel(address, options.credentials, options.message_bytes_max,
                                      arguments);
}

// Waits until `channel` is connected, or has failed to connect. Whether it is connected.
bool ConnectOne(grpc::ChannelInterface& channel, absl::Time deadline) {
  while (true) {
    const grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_READY) return true;
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN) return false;
    if (!channel.WaitForStateChange(state, absl::ToChronoTime(deadline))) return false;
  }
}

bool HasFailed(grpc::ChannelInterface& channel) {
  return channel.GetState(/*try_to_connect=*/true) == GRPC_CHANNEL_TRANSIENT_FAILURE;
}

// Whether a server that answers so cannot serve now, while another one may.
bool IsAway(const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return false;
  const std::string reason = ErrorReason(status);
  return reason.empty() || IsLoading(status) || reason == "SHUTTING_DOWN" ||
         reason == "CLUSTER_UNAVAILABLE";
}

}  // namespace

Servers::Servers(std::vector<std::shared_ptr<grpc::ChannelInterface>> channels) {
  for (std::shared_ptr<grpc::ChannelInterface>& channel : channels) {
    auto stub = v1::SoftLookup::NewStub(channel);
    auto admin_stub = admin::v1::Admin::NewStub(channel);
    servers_.push_back({.channel = std::move(channel),
                        .stub = std::move(stub),
                        .admin_stub = std::move(admin_stub)});
  }
}

const Server& Servers::Connect(absl::Time deadline) {
  std::size_t first = current_;
  if (size() == 1 || servers_[first].channel->GetState(false) == GRPC_CHANNEL_READY) {
    return servers_[first];
  }
  // The rest of the time is left for the call.
  const absl::Duration time = (deadline - absl::Now()) / 2;
  const absl::Time end = absl::Now() + time;
  const absl::Duration wait = std::min(kServerWait, time / static_cast<double>(size()));
  const Server* failed = nullptr;
  for (bool is_connecting = true; is_connecting;) {
    is_connecting = false;
    failed = nullptr;
    for (std::size_t i = 0; i < size(); ++i) {
      const std::size_t index = (first + i) % size();
      const Server& server = servers_[index];
      if (ConnectOne(*server.channel, absl::Now() + wait)) {
        current_.compare_exchange_strong(first, index);
        return server;
      }
      if (!HasFailed(*server.channel)) {
        is_connecting = absl::Now() < end;
      } else if (failed == nullptr) {
        failed = &server;
      }
    }
  }
  return failed != nullptr ? *failed : servers_[first];
}

bool Servers::AwaitConnection(absl::Time deadline) const {
  if (size() == 1) return servers_[0].channel->WaitForConnected(absl::ToChronoTime(deadline));
  // gRPC connects a channel only while somebody waits for it, so all channels take turns.
  for (absl::Time now = absl::Now(); now < deadline;) {
    for (const Server& server : servers_) {
      const grpc_connectivity_state state = server.channel->GetState(/*try_to_connect=*/true);
      if (state == GRPC_CHANNEL_READY) return true;
      server.channel->WaitForStateChange(state,
                                         absl::ToChronoTime(std::min(now + kTurn, deadline)));
      now = absl::Now();
    }
  }
  return false;
}

bool Servers::CannotConnect() const {
  return std::all_of(servers_.begin(), servers_.end(),
                     [](const Server& server) { return HasFailed(*server.channel); });
}

void Servers::NoteFailure(const Server& server, const absl::Status& status) {
  if (!IsAway(status) && !IsRefusedByFollower(status)) return;
  auto index = static_cast<std::size_t>(&server - servers_.data());
  current_.compare_exchange_strong(index, (index + 1) % size());
}

std::vector<std::shared_ptr<grpc::ChannelInterface>> OpenChannels(std::string_view addresses,
                                                                  const ClientOptions& options) {
  std::vector<std::shared_ptr<grpc::ChannelInterface>> channels;
  for (const std::string& address : SplitServers(addresses)) {
    channels.push_back(OpenChannel(address, options));
  }
  return channels;
}

bool IsRefusedByFollower(const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return false;
  const std::map<std::string, std::string> metadata = ErrorMetadata(status);
  const auto written = metadata.find("written");
  return written != metadata.end() && written->second == "no" && metadata.contains("primary");
}

bool IsLoading(const absl::Status& status) { return ErrorReason(status) == "LOADING"; }

}  // namespace softlookup::client_internal
