#include "server/rpc/grpc_port.h"

#include <grpc/grpc.h>
#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace softlookup::server {
namespace {

// Time that a peer has to answer a keepalive PING, or to acknowledge sent data.
constexpr absl::Duration kKeepaliveTimeout = absl::Seconds(20);

// Maximum number of bytes that gRPC reads from a connection at once.
constexpr int kReadBytesMax = 64 << 10;

// Bytes that a client may send on a stream before the server reads its messages.
constexpr int kUnreadBytesMax = 128 << 10;

int WholeMilliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

}  // namespace

void GrpcPort::AddTo(grpc::ServerBuilder& builder,
                     const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, bounds_.streams_per_connection_max);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             WholeMilliseconds(bounds_.handshake_timeout));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, WholeMilliseconds(bounds_.keepalive));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, WholeMilliseconds(kKeepaliveTimeout));
  // By default, gRPC lets a client send 4 MiB on each stream before the server reads any of it. The
  // next two settings fix a stream's flow-control window at kUnreadBytesMax. A larger message gets
  // a window of its size while it is being read.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kUnreadBytesMax);
  // Refuses compressed messages, because a few compressed bytes could expand to very many.
  builder.SetDefaultCompressionAlgorithm(GRPC_COMPRESS_NONE);
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  // By default, gRPC reads up to 4 MiB at once, and parses all of it before it passes any call on.
  // In a flood of calls, gRPC would create all of them before the server sees the first.
  builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kReadBytesMax);
  // Turns off gRPC's own defence against a flood of PINGs. For each PING, that defence makes an
  // error of thirty times the PING's bytes. It is not needed, because gRPC stops reading a
  // connection on which 10,000 answers wait.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  // Sends keepalive PINGs on connections without calls, too, and without a limit on their number.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
}

absl::Status GrpcPort::Start() {
  return listener_.Start(kKeepaliveTimeout, [acceptor = acceptor_.get()](int listener, int fd) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.listener_fd = listener;
    connection.fd = fd;
    acceptor->HandleNewConnection(&connection);
  });
}

void GrpcPort::Cut(const std::string& peer, absl::string_view why) {
  if (!open_connections_.Cut(peer)) return;
  if (const auto left_out = cut_lines_.Allow(absl::Now())) {
    spdlog::warn("cut the connection of {}, which {}{}", peer, std::string(why),
                 *left_out > 0 ? absl::StrCat("; and ", *left_out, " others") : "");
  }
}

}  // namespace softlookup::server
