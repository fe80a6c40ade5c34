#include "client/cpp/channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

namespace softlookup::client_internal {
namespace {

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const Credentials& credentials) {
  if (!credentials.uses_tls()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = credentials.tls_ca;
  options.pem_cert_chain = credentials.tls_certificate;
  options.pem_private_key = credentials.tls_key;
  return grpc::SslCredentials(options);
}

}  // namespace

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address,
                                           const Credentials& credentials, int message_bytes_max,
                                           grpc::ChannelArguments arguments) {
  arguments.SetMaxSendMessageSize(message_bytes_max);
  arguments.SetMaxReceiveMessageSize(message_bytes_max);
  // While the channel waits to reconnect, every call and every retry of a call fails at once.
  // Retries begin after some 20 ms. So the channel's first wait is the shortest that gRPC accepts,
  // 100 ms. The caller sets the longest wait in `arguments`.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // Ignore a proxy that the environment names (http_proxy). It would intercept even calls to this
  // machine. Servers are near their clients, so they need no proxy.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, ChannelCredentialsOf(credentials), arguments);
}

}  // namespace softlookup::client_internal
