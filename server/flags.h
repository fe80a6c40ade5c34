#ifndef SOFTLOOKUP_SERVER_FLAGS_H_
#define SOFTLOOKUP_SERVER_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/limits.h"
#include "softlookup/kernel.h"

namespace softlookup::server {

// What the operator chose: a flag over its SOFTLOOKUP_… variable over the --config file over the
// default.
struct Flags {
  std::string listen = "127.0.0.1:7471";
  std::string http_listen = "127.0.0.1:7472";
  // Where everything is kept; empty: in memory only.
  std::string data_dir = "./softlookup-data";
  std::string backup_dir;  // Where backups are made; empty: nowhere.
  bool verify = false;     // Checks data_dir instead of serving it.
  int threads = 0;         // 0: one a core.
  Kernel kernel = Kernel::kAuto;
  // Lookups in one store that share a pass over its rows; 1: none do.
  std::int64_t share_queries = 256;
  std::int64_t share_wait_us = 5000;
  double shutdown_grace_seconds = 10;
  std::string log_level = "info";
  std::string log_format = "text";     // Or json.
  std::int64_t slow_lookup_ms = 1000;  // 0: none is logged as slow.
  Limits limits;
  double waiting_work_ms = absl::ToDoubleMilliseconds(limits.lookup_wait_max);
  std::int64_t connections_max = 10'000;
  std::int64_t streams_per_connection_max = 1024;
  double keepalive_seconds = 60;
  double handshake_timeout_seconds = 10;
  double stall_timeout_seconds = 60;
  double receive_timeout_seconds = 60;
  double revision_timeout_seconds = 60;
  std::int64_t request_bytes_max = std::int64_t{1} << 30;
  std::string tls_certificate;  // Paths of PEM files; empty: plaintext.
  std::string tls_key;
  std::string tls_client_ca;  // Empty: clients need no certificate.
  std::string auth;           // The auth file's path; empty: nobody is asked who they are.
  std::string audit_log;      // Its path; empty: there is none.
  bool insecure = false;
  // 0: no limit.
  double tenant_requests_per_second = 0;
  double tenant_rows_per_second = 0;
};

// Reads the command line and the environment. Prints help, the version or what is wrong and returns
// the process's exit code where that ends it: 0, or 2 for bad usage.
std::optional<int> ParseFlags(int argc, const char* const* argv, Flags& flags);

// A number of bytes, such as "4GiB", "512 MiB" or "1000000", with KiB, MiB, GiB or TiB in any case;
// nullopt if it is not that, or more than an int64.
std::optional<std::int64_t> ParseByteSize(absl::string_view text);

// "HOST:PORT" or "[IPV6]:PORT" in its parts; nullopt if it is not that.
struct HostPort {
  std::string host;
  int port = 0;
};
std::optional<HostPort> SplitHostPort(const std::string& address);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_FLAGS_H_
