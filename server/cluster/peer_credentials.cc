#include "server/cluster/peer_credentials.h"

#include <grpc/grpc_security_constants.h>

#include "core/base/check.h"

namespace softlookup::server {
namespace {

bool UsesTls(const PeerPem& pem) {
  const int texts = !pem.ca.empty() + !pem.certificate.empty() + !pem.key.empty();
  // Without the authority's certificate, gRPC would trust those of the machine.
  SOFTLOOKUP_CHECK(texts == 0 || texts == 3) << texts << " of 3 texts";
  return texts == 3;
}

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> PeerChannelCredentials(const PeerPem& pem) {
  if (!UsesTls(pem)) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials(
      {.pem_root_certs = pem.ca, .pem_private_key = pem.key, .pem_cert_chain = pem.certificate});
}

std::shared_ptr<grpc::ServerCredentials> PeerServerCredentials(const PeerPem& pem) {
  if (!UsesTls(pem)) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = pem.ca;
  options.pem_key_cert_pairs.push_back({.private_key = pem.key, .cert_chain = pem.certificate});
  return grpc::SslServerCredentials(options);
}

}  // namespace softlookup::server
