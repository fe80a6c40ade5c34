#ifndef SOFTLOOKUP_SERVER_CLUSTER_PEER_PROTOCOL_H_
#define SOFTLOOKUP_SERVER_CLUSTER_PEER_PROTOCOL_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/cluster/peers/peers.grpc.pb.h"

// What both sides of server/cluster/peers/peers.proto share.
namespace softlookup::server {

inline constexpr std::size_t kPeerChunkBytesMax = std::size_t{1} << 20;
// Maximum bytes of a message: a chunk, or a header with long names.
inline constexpr int kPeerMessageBytesMax = static_cast<int>(kPeerChunkBytesMax) + (64 << 10);

// How often a client on a connection with calls in progress asks whether the other side is alive,
// and how long it waits for the answer.
inline constexpr absl::Duration kPeerKeepalive = absl::Seconds(10);
inline constexpr absl::Duration kPeerKeepaliveTimeout = absl::Seconds(5);

// The longest time that a Stage or a Fetch may take.
inline constexpr absl::Duration kPeerCallTimeoutMax = absl::Minutes(15);
// The time that a Seed may take, and the longest that a server lets it ask for. They differ because
// gRPC rounds long timeouts up. A copy can have hundreds of gigabytes.
inline constexpr absl::Duration kSeedTimeout = absl::Hours(6);
inline constexpr absl::Duration kSeedTimeoutMax = absl::Hours(7);

// Which replica calls others, and how.
struct PeerOptions {
  std::string cluster;
  std::string group;
  std::string node;
  std::shared_ptr<grpc::ChannelCredentials> credentials;
};

cluster::v1::Caller CallerOf(const PeerOptions& options, const std::string& to_node);

inline constexpr int kNoMessageLimit = -1;
// Returns a channel with a connection of its own to `address`, as HOST:PORT. It takes messages of
// at most `message_bytes_max`.
std::shared_ptr<grpc::Channel> OpenPeerChannel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    int message_bytes_max = kPeerMessageBytesMax);

// Whether `text` has the form of a SHA-256: 64 digits of [0-9a-f].
bool IsSha256(absl::string_view text);

// Appends `chunk` to `bytes`, of which `size` were announced. INVALID_ARGUMENT if the chunk is
// empty or too large, or if `bytes` would be more than `size`. The memory of `bytes` grows with the
// bytes that have come, and does not depend on `size` alone.
absl::Status AppendChunk(absl::string_view chunk, std::uint64_t size, std::string& bytes);

// Convert a status. Both keep the code, and the first 1,024 bytes of the message.
grpc::Status ToPeerStatus(const absl::Status& status);
absl::Status FromPeerStatus(const grpc::Status& status);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_CLUSTER_PEER_PROTOCOL_H_
