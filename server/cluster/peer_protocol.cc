#include "server/cluster/peer_protocol.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace softlookup::server {
namespace {

// Trailers hold only a few kilobytes.
constexpr std::size_t kPeerErrorBytesMax = 1024;

}  // namespace

cluster::v1::Caller CallerOf(const PeerOptions& options, const std::string& to_node) {
  cluster::v1::Caller caller;
  caller.set_cluster(options.cluster);
  caller.set_group(options.group);
  caller.set_from_node(options.node);
  caller.set_to_node(to_node);
  return caller;
}

std::shared_ptr<grpc::Channel> OpenPeerChannel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    int message_bytes_max) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS,
                   static_cast<int>(absl::ToInt64Milliseconds(kPeerKeepalive)));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                   static_cast<int>(absl::ToInt64Milliseconds(kPeerKeepaliveTimeout)));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(message_bytes_max);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

bool IsSha256(absl::string_view text) {
  return text.size() == 64 && std::ranges::all_of(text, [](char c) {
           return absl::ascii_isdigit(static_cast<unsigned char>(c)) || (c >= 'a' && c <= 'f');
         });
}

absl::Status AppendChunk(absl::string_view chunk, std::uint64_t size, std::string& bytes) {
  if (chunk.empty() || chunk.size() > kPeerChunkBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("A chunk has ", chunk.size(), " bytes"));
  }
  if (bytes.size() + chunk.size() > size) {
    return absl::InvalidArgumentError(
        absl::StrCat("More bytes came than the ", size, " that were announced"));
  }
  const std::size_t needed = bytes.size() + chunk.size();
  if (bytes.capacity() < needed) {
    bytes.reserve(std::min<std::size_t>(size, std::max(needed, 2 * bytes.capacity())));
  }
  bytes.append(chunk.data(), chunk.size());
  return absl::OkStatus();
}

grpc::Status ToPeerStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  // The codes of absl::Status are those of gRPC.
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message().substr(0, kPeerErrorBytesMax)));
}

absl::Status FromPeerStatus(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      absl::string_view(status.error_message()).substr(0, kPeerErrorBytesMax));
}

}  // namespace softlookup::server
