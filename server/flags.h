#ifndef SOFTLOOKUP_SERVER_FLAGS_H_
#define SOFTLOOKUP_SERVER_FLAGS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/limits.h"
#include "softlookup/kernel.h"

namespace softlookup::server {

// The operator's settings. The help texts in flags.cc describe each of them. If several places set
// a flag, the command line wins. After it come the flag's SOFTLOOKUP_… variable, the --config file
// and the default, in this order.
struct Flags {
  std::string listen = "127.0.0.1:7471";
  std::string http_listen = "127.0.0.1:7472";
  // Directory of the log. Empty: nothing is kept on disk.
  std::string data_dir = "./softlookup-data";
  std::string backup_dir;  // Directory that holds all backups. Empty: backups are disabled.
  bool verify = false;     // The process checks data_dir instead of serving it.
  int threads = 0;         // Threads that scan. ParseFlags() replaces 0 by one per core.
  Kernel kernel = Kernel::kAuto;
  // Maximum number of queries that share a pass. 1: lookups share no pass.
  std::int64_t share_queries = 256;
  std::int64_t share_wait_us = 5000;
  // EngineOptions::compact_above: in [0, 1]. 0: the engine compacts no store by itself.
  double compact_above = 0;
  double shutdown_grace_seconds = 10;
  std::string log_level = "info";
  std::string log_format = "text";     // "text" or "json".
  std::int64_t slow_lookup_ms = 1000;  // Lookups this slow or slower are logged. 0: none is.
  Limits limits;
  // The value of --max-waiting-work, in milliseconds. ParseFlags() copies it to
  // limits.lookup_wait_max.
  double lookup_wait_ms_max = absl::ToDoubleMilliseconds(limits.lookup_wait_max);
  std::int64_t connections_max = 10'000;
  std::int64_t streams_per_connection_max = 1024;
  double keepalive_seconds = 60;
  double handshake_timeout_seconds = 10;
  double stall_timeout_seconds = 60;
  double receive_timeout_seconds = 60;
  double revision_timeout_seconds = 60;
  std::int64_t request_bytes_max = std::int64_t{1} << 30;
  std::string tls_certificate;  // Path of a PEM file. Empty: plaintext.
  std::string tls_key;          // Path of the private key. Set if and only if tls_certificate is.
  std::string tls_client_ca;    // Path of a PEM file. Empty: clients need no certificate.
  std::string auth;             // Path of the auth file. Empty: nobody is identified.
  // Whether the process passes calls on to the nodes of a cluster, and keeps no stores.
  bool router = false;
  // Members of etcd as HOST:PORT, with commas between them. Empty: the server is neither a
  // replica nor a router, and the other flags of clusters are empty, too.
  std::string cluster_etcd;
  std::string cluster_etcd_ca;  // Path of a PEM file. Empty: etcd is spoken to in plaintext.
  std::string cluster_etcd_certificate;  // Path of a PEM file. Empty: this server shows none.
  std::string cluster_etcd_key;          // Set if and only if cluster_etcd_certificate is.
  std::string cluster;
  std::string group;
  std::string node;
  std::string founder;         // Node that may found the group. Empty: any.
  std::string cluster_listen;  // HOST:PORT for other nodes. Empty: none can reach this one.
  std::string advertise;       // HOST:PORT that other nodes are told. Empty: cluster_listen.
  // Paths of PEM files, for the links between nodes. All three are set, or none: plaintext.
  std::string cluster_ca;
  std::string cluster_certificate;
  std::string cluster_key;
  std::string audit_log;  // Path of the audit log. Empty: there is none.
  std::string config;     // Path of the --config file, as given. Empty: there is none.
  // Whether other machines may connect without TLS or without an auth file.
  bool insecure = false;
  // Rates of each tenant. 0: no limit.
  double tenant_requests_per_second = 0;
  double tenant_rows_per_second = 0;
  // What ParseFlags() warns of: sentences for the operator, to be logged at the start.
  std::vector<std::string> warnings;
};

// Reads the command line, the environment and the --config file into `flags`, which must hold the
// defaults. The help fits `terminal_width` columns, if it is set. Returns nullopt if the process
// may go on. Otherwise the process must exit with the returned code: 0 if the help or the version
// was printed, 2 if an error in the usage was printed.
std::optional<int> ParseFlags(int argc, const char* const* argv, Flags& flags,
                              std::optional<std::size_t> terminal_width = std::nullopt);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_FLAGS_H_
