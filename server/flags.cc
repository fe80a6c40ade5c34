#include "server/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/cli/byte_size.h"
#include "client/cli/help_formatter.h"
#include "core/base/cluster_name.h"
#include "server/base/host_port.h"
#include "server/base/version.h"
#include "server/flag_checks.h"
#include "server/flag_environment.h"
#include "server/flag_errors.h"

namespace softlookup::server {
namespace {

using cli::ByteSize;

constexpr char kDescription[] =
    "softlookup-server keeps stores of vector keys and values and answers soft lookups over gRPC.";

constexpr char kFooter[] =
    "The environment and the --config file can set flags, too. The variable of a flag is\n"
    "SOFTLOOKUP_ and the flag's name in capitals with _ for -, such as SOFTLOOKUP_HTTP_LISTEN.\n"
    "The file has a line name=\"value\" for each flag. The command line overrides the\n"
    "environment, the environment overrides the file, and the file overrides the defaults.\n"
    "A SIZE is a number of bytes, or a whole number of KiB, MiB, GiB or TiB, such as 512MiB.\n\n"
    "When the server is ready, it prints one line:\n"
    "  softlookup-server ready grpc=HOST:PORT http=HOST:PORT\n"
    "SIGTERM and SIGINT let running calls end, then stop the server with exit code 0. Bad usage\n"
    "has exit code 2. SIGHUP makes the server read certificates and the auth file again, and\n"
    "reopen the audit log. Flags and the --config file are read at the start only.";

void ValidateAddress(const std::string& address) {
  if (SplitHostPort(address)) return;
  throw CLI::ValidationError(absl::StrCat(
      "\"", address, "\" is not HOST:PORT, such as 127.0.0.1:7471, 0.0.0.0:7471 or [::1]:0"));
}

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;

// --help lists the flags in the order in which these functions add them.

void AddAddresses(CLI::App& app, Flags& flags) {
  const CLI::Validator address(
      [](std::string& value) {
        ValidateAddress(value);
        return std::string();
      },
      "HOST:PORT");
  app.add_option("--listen", flags.listen, "Address to serve gRPC on; port 0 picks a free port")
      ->transform(address);
  app.add_option("--http-listen", flags.http_listen,
                 "Address to serve /healthz, /readyz and /metrics on; port 0 picks a free port")
      ->transform(address);
}

// When `app` parses, it writes the value of --ephemeral, which has no field in Flags, to
// `is_ephemeral`.
void AddDirectories(CLI::App& app, Flags& flags, bool& is_ephemeral) {
  app.add_option("--data-dir", flags.data_dir,
                 "Directory of all stores' data, for one server at a time");
  app.add_option("--backup-dir", flags.backup_dir,
                 "Directory that backups are made in; without it, calls for backups are refused");
  app.add_flag("--ephemeral", is_ephemeral,
               "Keep stores in RAM only: all are gone when the server stops");
  app.add_flag(
         "--verify", flags.verify,
         "Check all of --data-dir, print what it holds, and exit with 0 if it is whole, else 1")
      ->configurable(false);
}

void AddScanFlags(CLI::App& app, Flags& flags) {
  app.add_option("--threads", flags.threads, "Threads that scan rows; 0: one per core")
      ->check(CLI::Range(0, 1024));
  app.add_option_function<std::string>(
         "--kernel", [&flags](const std::string& name) { flags.kernel = *KernelOfName(name); },
         "Instructions that scan rows: the CPU's vectors (simd, auto), or also its matrix unit "
         "(amx)")
      ->check(CLI::IsMember(KernelNames()))
      ->default_str("auto");
  app.add_option("--share-queries", flags.share_queries,
                 "Maximum number of queries that share a pass over a store's rows; 1: lookups "
                 "share no pass")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option(
         "--share-wait-us", flags.share_wait_us,
         "Longest time a pass waits for more lookups to share it, in microseconds; 0: no wait")
      ->check(CLI::Range(0, 1'000'000));
}

void AddCompaction(CLI::App& app, Flags& flags) {
  app.add_option(
         "--compact-above", flags.compact_above,
         "Compact a store once at least this part of its rows can go; some past memories end; "
         "0: never")
      ->check(CLI::Range(0.0, 1.0));
}

void AddShutdownAndLogFlags(CLI::App& app, Flags& flags) {
  app.add_option("--shutdown-grace", flags.shutdown_grace_seconds,
                 "Seconds within which running calls may end after SIGTERM or SIGINT; idle streams "
                 "end at once")
      ->check(CLI::Range(0.0, 3600.0));
  app.add_option("--log-level", flags.log_level,
                 "Lowest level of the lines that are written to standard error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error", "off"}));
  app.add_option(
         "--log-format", flags.log_format,
         "Format of the server log and the audit log: text, or json for one object per line")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option(
         "--slow-lookup-ms", flags.slow_lookup_ms,
         "Log lookups that take this many milliseconds or more, at most 10 per second; 0: log none")
      ->check(CLI::Range(0, 3'600'000));
}

void AddSecurityFlags(CLI::App& app, Flags& flags) {
  const auto file = [&app](const char* flag, std::string& path, const char* what) {
    return app.add_option(flag, path, what)->group("Security");
  };
  CLI::Option* certificate = file(
      "--tls-certificate", flags.tls_certificate,
      "PEM file of the server's certificate and its chain; with it, gRPC is served over TLS only");
  CLI::Option* private_key =
      file("--tls-key", flags.tls_key, "PEM file of the private key of --tls-certificate");
  CLI::Option* client_ca = file("--tls-client-ca", flags.tls_client_ca,
                                "Require client certificates that an authority in this PEM file "
                                "signed (default: not required)");
  certificate->needs(private_key);
  private_key->needs(certificate);
  client_ca->needs(certificate);
  file("--auth", flags.auth,
       "JSON file of who may do what, made by softlookup auth add; without it, anyone may do "
       "anything");
  file(
      "--audit-log", flags.audit_log,
      "File that gets a line for each attempted change, each backup call, failed login and denial");
  app.add_flag(
         "--insecure", flags.insecure,
         "Allow --listen beyond loopback without TLS or without --auth; for trusted networks only")
      ->group("Security");
}

void AddClusterFlags(CLI::App& app, Flags& flags) {
  const CLI::Validator addresses(
      [](std::string& value) {
        for (const absl::string_view address : absl::StrSplit(value, ',')) {
          // gRPC's name for the socket of a process on this machine.
          if (!absl::StartsWith(address, "unix:")) ValidateAddress(std::string(address));
        }
        return std::string();
      },
      "HOST:PORT,...");
  const CLI::Validator name(
      [](std::string& value) {
        return IsClusterName(value) ? std::string()
                                    : absl::StrCat("\"", value, "\" is not ", kClusterNameForm);
      },
      "NAME");
  CLI::Option* etcd =
      app.add_option(
             "--cluster-etcd", flags.cluster_etcd,
             "Addresses of etcd's members, which then decide the order of writes and who may write")
          ->group("Cluster")
          ->transform(addresses);
  const auto file = [&app](const char* flag, std::string& path, const char* what) {
    return app.add_option(flag, path, what)->group("Cluster");
  };
  CLI::Option* ca =
      file("--cluster-etcd-ca", flags.cluster_etcd_ca,
           "PEM file of the authorities of etcd's members; with it, etcd is spoken to over TLS");
  CLI::Option* certificate =
      file("--cluster-etcd-certificate", flags.cluster_etcd_certificate,
           "PEM file of the client certificate that this server shows to etcd, with its chain");
  CLI::Option* private_key = file("--cluster-etcd-key", flags.cluster_etcd_key,
                                  "PEM file of the private key of --cluster-etcd-certificate");
  ca->needs(etcd);
  certificate->needs(ca);
  certificate->needs(private_key);
  private_key->needs(certificate);
  const auto add_name = [&](const char* flag, std::string& value, const char* what) {
    return app.add_option(flag, value, what)->group("Cluster")->transform(name)->needs(etcd);
  };
  etcd->needs(add_name("--cluster", flags.cluster,
                       "Name of the cluster, which may share its etcd with others"));
  app.add_flag("--router", flags.router,
               "Keep no stores, and pass all calls on to the nodes of the cluster")
      ->group("Cluster")
      ->needs(etcd);
  add_name("--group", flags.group, "Name of the group of servers with the same data");
  add_name("--node", flags.node,
           "Name of this server in its group; for one data directory alone, also after it is lost");
  app.add_option(
         "--founder", flags.founder,
         "Node that founds the group; others with an empty directory wait to be added to it")
      ->group("Cluster")
      ->transform(name)
      ->needs(etcd);
  const CLI::Validator address(
      [](std::string& value) {
        ValidateAddress(value);
        return std::string();
      },
      "HOST:PORT");
  CLI::Option* listen =
      app.add_option("--cluster-listen", flags.cluster_listen,
                     "Address on which other nodes of the group, and routers, reach this one")
          ->group("Cluster")
          ->transform(address)
          ->needs(etcd);
  app.add_option("--advertise", flags.advertise,
                 "Address that the other nodes are told, if it is not that of --cluster-listen")
      ->group("Cluster")
      ->transform(address)
      ->needs(listen);
  CLI::Option* node_ca =
      file("--cluster-ca", flags.cluster_ca,
           "PEM file of the authority of all nodes' and routers' certificates, and of no others");
  CLI::Option* node_certificate =
      file("--cluster-certificate", flags.cluster_certificate,
           "PEM file of this node's or router's certificate, with its chain");
  CLI::Option* node_key = file("--cluster-key", flags.cluster_key,
                               "PEM file of the private key of --cluster-certificate");
  node_ca->needs(etcd)->needs(node_certificate)->needs(node_key);
  node_certificate->needs(node_ca);
  node_key->needs(node_ca);
}

void AddCountLimits(CLI::App& app, Flags& flags) {
  Limits& limits = flags.limits;
  const auto limit = [&app](const char* flag, std::int64_t& value, const char* what,
                            std::int64_t max) {
    app.add_option(flag, value, what)->group("Limits")->check(CLI::Range(std::int64_t{1}, max));
  };
  limit("--max-queries", limits.queries_per_lookup_max,
        "Maximum number of queries in a lookup or Attend; a call with more is refused", 1 << 20);
  limit("--max-append-rows", limits.rows_per_append_max,
        "Maximum number of rows in an append or Attend; a call with more is refused", 1 << 24);
  limit("--max-top-weights", limits.top_weights_max,
        "Maximum top_weights (weights listed per query); a call that asks for more is refused",
        1 << 20);
  app.add_option("--max-message-bytes", limits.message_bytes_max,
                 "Maximum bytes of one request or answer; a call with a larger one is refused")
      ->group("Limits")
      ->transform(ByteSize(/*min=*/1, /*max=*/1024 * kMebibyte));
  limit("--max-stores", limits.store_count_max,
        "Maximum number of stores; creating more is refused", std::int64_t{1} << 32);
  limit("--max-waiting-lookups", limits.waiting_jobs_max,
        "Maximum number of lookups and other jobs that wait for a thread; more are refused at once",
        1 << 24);

  limit("--max-connections", flags.connections_max,
        "Maximum number of open gRPC connections; further ones are closed at once",
        std::int64_t{1} << 24);
  limit("--max-streams-per-connection", flags.streams_per_connection_max,
        "Maximum number of calls in progress on a connection; clients hold further calls back",
        1 << 24);
}

// Adds a limit that may be a fraction, from `min` to `max`.
void AddNumberLimit(CLI::App& app, const char* flag, double& value, const char* what, double min,
                    double max) {
  app.add_option(flag, value, what)->group("Limits")->check(CLI::Range(min, max));
}

void AddTimeLimits(CLI::App& app, Flags& flags) {
  constexpr double kDay = 86400;
  AddNumberLimit(
      app, "--max-waiting-work", flags.lookup_wait_ms_max,
      "Refuse a lookup that must wait if its answer is expected after these ms and after 4x its "
      "time alone",
      0, 1000 * kDay);
  AddNumberLimit(
      app, "--keepalive-seconds", flags.keepalive_seconds,
      "Seconds of silence before a connection is pinged; it is closed if no answer comes in 20 s",
      1, kDay);
  AddNumberLimit(
      app, "--handshake-timeout", flags.handshake_timeout_seconds,
      "Seconds for a new connection to begin HTTP/2, TLS handshake included; else it is closed",
      0.1, kDay);
  AddNumberLimit(app, "--stall-timeout", flags.stall_timeout_seconds,
                 "Seconds a client has to take a message, plus as many per MiB of a unary answer; "
                 "else the call ends",
                 0.1, kDay);
  AddNumberLimit(app, "--receive-timeout", flags.receive_timeout_seconds,
                 "Seconds in which the first message of a call must arrive; else the call is ended",
                 0.1, kDay);
  AddNumberLimit(
      app, "--revision-timeout", flags.revision_timeout_seconds,
      "Seconds that a lookup may wait until its store has reached its min_revision; then it fails",
      0.1, kDay);
}

void AddTenantRates(CLI::App& app, Flags& flags) {
  AddNumberLimit(
      app, "--tenant-requests-per-second", flags.tenant_requests_per_second,
      "Requests per second of a tenant (store name up to the first /); more are refused; 0: no "
      "limit",
      0, 1e12);
  AddNumberLimit(app, "--tenant-rows-per-second", flags.tenant_rows_per_second,
                 "Rows appended plus queries per second of a tenant; more are refused; 0: no limit",
                 0, 1e12);
}

void AddMemoryLimits(CLI::App& app, Flags& flags) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  // gRPC's own budget is twice --request-memory, and must fit 64 bits.
  constexpr std::int64_t kRequestMax = std::int64_t{1} << 60;
  app.add_option("--request-memory", flags.request_bytes_max,
                 "Maximum bytes of all requests in progress, raw and parsed; requests beyond it "
                 "are refused")
      ->group("Limits")
      ->transform(ByteSize(kMebibyte, kRequestMax));
  app.add_option("--ranking-memory", flags.limits.ranking_bytes_max,
                 "Maximum bytes of top_k rows that all running calls keep; calls that need more "
                 "are refused")
      ->group("Limits")
      ->transform(ByteSize(/*min=*/0, kMax));
  app.add_option("--memory-limit", flags.limits.ram_bytes_max,
                 "Maximum bytes of stores, waiting appends and top_k rows; growth beyond it is "
                 "refused; 0: no limit")
      ->group("Limits")
      ->transform(ByteSize(/*min=*/0, kMax));
}

// Adds all flags to `app`. When `app` parses, it writes their values to `flags` and `is_ephemeral`.
void AddAllFlags(CLI::App& app, Flags& flags, bool& is_ephemeral) {
  AddAddresses(app, flags);
  AddDirectories(app, flags, is_ephemeral);
  AddScanFlags(app, flags);
  AddCompaction(app, flags);
  AddShutdownAndLogFlags(app, flags);
  AddSecurityFlags(app, flags);
  AddClusterFlags(app, flags);
  AddCountLimits(app, flags);
  AddTimeLimits(app, flags);
  AddTenantRates(app, flags);
  AddMemoryLimits(app, flags);
}

// Returns the arguments for CLI11: those of the environment and then those of the command line, all
// in reverse order. CLI11 turns the order round again, and takes the last value of a flag, so the
// command line overrides the environment. If CLI11 itself read the variables, the --config file
// would override them.
std::vector<std::string> WithEnvironment(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> arguments = EnvironmentArguments(app);
  arguments.insert(arguments.end(), argv + std::min(argc, 1), argv + argc);
  std::reverse(arguments.begin(), arguments.end());  // CLI11 expects them in reverse order.
  return arguments;
}

// Prints `error`. Returns the exit code of bad usage.
int PrintUsageError(absl::string_view error) {
  std::cerr << "softlookup-server: " << error << "\n";
  return 2;
}

}  // namespace

std::optional<int> ParseFlags(int argc, const char* const* argv, Flags& flags,
                              std::optional<std::size_t> terminal_width) {
  CLI::App app(kDescription, "softlookup-server");
  if (terminal_width.has_value()) {
    app.formatter(std::make_shared<cli::HelpFormatter>(*terminal_width));
  }
  app.footer(kFooter);
  app.set_version_flag("--version", absl::StrCat("softlookup-server ", VersionText()));
  app.set_config("--config", "",
                 "File that sets flags, a line name=\"value\" for each; environment and command "
                 "line override it")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.option_defaults()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->always_capture_default();

  bool is_ephemeral = false;
  AddAllFlags(app, flags, is_ephemeral);

  const std::vector<std::string> arguments = WithEnvironment(app, argc, argv);
  try {
    app.parse(std::vector<std::string>(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    const std::string line = ConfigMistake(app).value_or(FlagErrorLine(app, error, arguments));
    return PrintUsageError(absl::StrCat(line, "\nRun with --help for the flags."));
  }
  if (const std::optional<std::string> error = ConfigMistake(app)) {
    return PrintUsageError(*error);
  }
  // CLI::Range() accepts NaN, since no comparison with NaN is true.
  if (const std::optional<std::string> error = NonFiniteFlag(flags)) {
    return PrintUsageError(WithPlace(app, arguments, *error));
  }
  const bool sets_data_dir = !app.get_option("--data-dir")->empty();
  if (const std::optional<std::string> error = FlagConflict(flags, is_ephemeral, sets_data_dir)) {
    return PrintUsageError(*error);
  }
  if (is_ephemeral) flags.data_dir.clear();
  flags.warnings = UnknownVariables(app);
  for (std::string& warning : OverriddenSettings(app)) flags.warnings.push_back(std::move(warning));
  const CLI::Option* config = app.get_config_ptr();
  if (!config->empty()) flags.config = config->as<std::string>();
  flags.limits.lookup_wait_max = absl::Milliseconds(flags.lookup_wait_ms_max);
  if (flags.threads == 0) {
    flags.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  return std::nullopt;
}

}  // namespace softlookup::server
