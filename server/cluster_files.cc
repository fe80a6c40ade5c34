#include "server/cluster_files.h"

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"
#include "server/base/read_file.h"
#include "server/security/tls_credentials.h"

namespace softlookup::server {
namespace {

// Returns the contents of a file that a flag names; "" for no file.
absl::StatusOr<std::string> Contents(const std::string& path) {
  if (path.empty()) return std::string();
  return ReadFile(path);
}

}  // namespace

absl::StatusOr<EtcdOptions> EtcdOptionsOf(const Flags& flags) {
  EtcdOptions etcd{.endpoints = absl::StrSplit(flags.cluster_etcd, ','),
                   .credentials = grpc::InsecureChannelCredentials()};
  if (flags.cluster_etcd_ca.empty()) return etcd;
  grpc::SslCredentialsOptions options;
  SOFTLOOKUP_ASSIGN_OR_RETURN(options.pem_root_certs, Contents(flags.cluster_etcd_ca));
  SOFTLOOKUP_ASSIGN_OR_RETURN(options.pem_cert_chain, Contents(flags.cluster_etcd_certificate));
  SOFTLOOKUP_ASSIGN_OR_RETURN(options.pem_private_key, Contents(flags.cluster_etcd_key));
  etcd.credentials = grpc::SslCredentials(options);
  return etcd;
}

absl::StatusOr<PeerPem> PemOfPeers(const Flags& flags) {
  PeerPem pem;
  if (flags.cluster_ca.empty()) return pem;
  SOFTLOOKUP_ASSIGN_OR_RETURN(pem.ca, Contents(flags.cluster_ca));
  SOFTLOOKUP_ASSIGN_OR_RETURN(pem.certificate, Contents(flags.cluster_certificate));
  SOFTLOOKUP_ASSIGN_OR_RETURN(pem.key, Contents(flags.cluster_key));
  // An empty authority would let everybody in.
  const absl::Status checked =
      CheckTlsConfig({.certificate = pem.certificate, .private_key = pem.key, .client_ca = pem.ca});
  if (pem.ca.empty()) return absl::InvalidArgumentError("--cluster-ca: the file is empty");
  if (!checked.ok()) {
    // The same check is made of the files for clients.
    return absl::InvalidArgumentError(
        absl::StrReplaceAll(checked.message(), {{"--tls-client-ca", "--cluster-ca"},
                                                {"--tls-certificate", "--cluster-certificate"},
                                                {"--tls-key", "--cluster-key"}}));
  }
  return pem;
}

absl::Status CheckClusterFiles(const Flags& flags) {
  if (flags.cluster_etcd.empty()) return absl::OkStatus();
  SOFTLOOKUP_RETURN_IF_ERROR(EtcdOptionsOf(flags).status());
  return PemOfPeers(flags).status();
}

}  // namespace softlookup::server
