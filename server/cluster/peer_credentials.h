#ifndef SOFTLOOKUP_SERVER_CLUSTER_PEER_CREDENTIALS_H_
#define SOFTLOOKUP_SERVER_CLUSTER_PEER_CREDENTIALS_H_

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

namespace softlookup::server {

// What replicas use in TLS handshakes with each other, as PEM texts. All three are empty, or none.
// Whoever has a certificate of the authority can read and write all data of the group.
struct PeerPem {
  std::string ca;           // The certificate of the authority that signs those of all replicas.
  std::string certificate;  // This replica's, for clients and for servers, then its chain's.
  std::string key;          // The private key of the certificate.
};

// Return the credentials of mutual TLS: each side refuses a certificate that the authority has not
// signed. A client also refuses one that is not for the host that it calls. Without TLS if the
// texts are empty. Texts that are not PEM show later: no call succeeds, and no server starts.
std::shared_ptr<grpc::ChannelCredentials> PeerChannelCredentials(const PeerPem& pem);
std::shared_ptr<grpc::ServerCredentials> PeerServerCredentials(const PeerPem& pem);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_CLUSTER_PEER_CREDENTIALS_H_
