#ifndef SOFTLOOKUP_TESTS_CLIENT_TEST_CERTIFICATES_H_
#define SOFTLOOKUP_TESTS_CLIENT_TEST_CERTIFICATES_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>
#include <vector>

#include "client/tool/certificate_authority.h"

namespace softlookup::testing {

// An authority with a server's pair for `hosts` and a client's pair.
struct TestCertificates {
  explicit TestCertificates(const std::vector<std::string>& hosts = {"localhost", "127.0.0.1"})
      : authority(*tool::CertificateAuthority::Create()),
        server(*authority.IssueServer(hosts)),
        client(*authority.IssueClient("client")) {}

  // With `ask_client`, clients must have a certificate of the authority.
  std::shared_ptr<grpc::ServerCredentials> ServerCredentials(bool ask_client = false) const {
    grpc::SslServerCredentialsOptions options(
        ask_client ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                   : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
    options.pem_key_cert_pairs.push_back({server.key, server.certificate});
    options.pem_root_certs = authority.pem().certificate;
    return grpc::SslServerCredentials(options);
  }

  tool::CertificateAuthority authority;
  tool::PemPair server;
  tool::PemPair client;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CLIENT_TEST_CERTIFICATES_H_
