#include "server/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/help_formatter.h"
#include "server/flag_errors.h"
#include "server/version.h"

namespace softlookup::server {
namespace {

constexpr char kDescription[] =
    "softlookup-server keeps stores of vector keys and values and answers soft lookups over gRPC.";

constexpr char kFooter[] =
    "The environment and the --config file can set flags, too. The variable of a flag is\n"
    "SOFTLOOKUP_ and the flag's name in capitals with _ for -, such as SOFTLOOKUP_HTTP_LISTEN.\n"
    "The file has a line name=\"value\" for each flag. The command line overrides the\n"
    "environment, the environment overrides the file, and the file overrides the defaults.\n\n"
    "When the server is ready, it prints one line:\n"
    "  softlookup-server ready grpc=HOST:PORT http=HOST:PORT\n"
    "SIGTERM and SIGINT let running calls end, then stop the server with exit code 0. Bad usage\n"
    "has exit code 2. SIGHUP makes the server read certificates and the auth file again, and\n"
    "reopen the audit log.";

std::string VariableOf(const std::string& flag) {
  return absl::StrCat("SOFTLOOKUP_",
                      absl::AsciiStrToUpper(absl::StrReplaceAll(flag, {{"-", "_"}})));
}

void ValidateAddress(const std::string& address) {
  if (SplitHostPort(address)) return;
  throw CLI::ValidationError(absl::StrCat(
      "\"", address, "\" is not HOST:PORT, such as 127.0.0.1:7471, 0.0.0.0:7471 or [::1]:0"));
}

// Replaces `text`, a size such as "4GiB", by its number of bytes. Returns an error message if
// `text` is not a size, else "", as CLI11 wants it.
std::string ByteSizeToNumber(std::string& text) {
  const std::optional<std::int64_t> bytes = ParseByteSize(text);
  if (!bytes) {
    return absl::StrCat("\"", text, "\" is not a number of bytes, such as 4GiB, 512MiB or 1000000");
  }
  text = absl::StrCat(*bytes);
  return "";
}

// Like ByteSizeToNumber(), for --request-memory. Also returns an error if the size is below 1 MiB
// or above 2^60 bytes: gRPC's own budget is twice the size, and must fit 64 bits.
std::string RequestBytesToNumber(std::string& text) {
  std::string error = ByteSizeToNumber(text);
  if (!error.empty()) return error;
  const std::int64_t bytes = *ParseByteSize(text);
  const bool is_in_range = bytes >= std::int64_t{1} << 20 && bytes <= std::int64_t{1} << 60;
  return is_in_range ? "" : absl::StrCat(bytes, " bytes are not between 1MiB and 1048576TiB");
}

// Whether `a` and `b` name the same directory, after following links. The directories need not
// exist. False if `a` is empty.
bool IsSamePlace(const std::string& a, const std::string& b) {
  const auto resolved = [](const std::string& path) {
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::absolute(path + "/", error);
    return std::filesystem::weakly_canonical(absolute, error);
  };
  return !a.empty() && !resolved(a).empty() && resolved(a) == resolved(b);
}

// The directory of the file at `path`.
std::string DirectoryOf(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// Returns the arguments for CLI11: the environment's variables as flags, then the flags of the
// command line, all in reverse order. If a flag occurs twice, CLI11 takes the last one, so the
// command line overrides the environment. If CLI11 itself read the variables, the --config file
// would override them.
std::vector<std::string> WithEnvironment(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty()) continue;
    const std::string flag = option->get_lnames()[0];
    if (flag == "help" || flag == "version") continue;
    const char* value = std::getenv(VariableOf(flag).c_str());
    if (value != nullptr && *value != '\0')
      arguments.push_back(absl::StrCat("--", flag, "=", value));
  }
  arguments.insert(arguments.end(), argv + std::min(argc, 1), argv + argc);
  std::reverse(arguments.begin(), arguments.end());  // CLI11 expects them in reverse order.
  return arguments;
}

}  // namespace

std::optional<std::int64_t> ParseByteSize(absl::string_view text) {
  const auto digits_end = std::find_if_not(text.begin(), text.end(), absl::ascii_isdigit);
  const std::size_t digit_count = static_cast<std::size_t>(digits_end - text.begin());
  std::int64_t count = 0;
  if (!absl::SimpleAtoi(text.substr(0, digit_count), &count)) return std::nullopt;
  const absl::string_view unit = absl::StripLeadingAsciiWhitespace(text.substr(digit_count));
  int shift = 0;
  for (const char* name : {"", "KiB", "MiB", "GiB", "TiB"}) {
    if (absl::EqualsIgnoreCase(unit, name)) {
      if (count > std::numeric_limits<std::int64_t>::max() >> shift) return std::nullopt;
      return count << shift;
    }
    shift += 10;
  }
  return std::nullopt;
}

std::optional<HostPort> SplitHostPort(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  HostPort result{.host = address.substr(0, colon)};
  if (result.host.front() == '[') {
    if (result.host.size() < 3 || result.host.back() != ']') return std::nullopt;
    result.host = result.host.substr(1, result.host.size() - 2);
  } else if (result.host.find(':') != std::string::npos) {
    return std::nullopt;
  }
  const std::string port = address.substr(colon + 1);
  if (port.empty() || !std::all_of(port.begin(), port.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(port, &result.port) || result.port > 65535) {
    return std::nullopt;
  }
  return result;
}

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
  CLI::Option* data_dir = app.add_option("--data-dir", flags.data_dir,
                                         "Directory of all stores' data, for one server at a time");
  app.add_option("--backup-dir", flags.backup_dir,
                 "Directory that backups are made in; without it, calls for backups are refused");
  bool ephemeral = false;
  app.add_flag("--ephemeral", ephemeral,
               "Keep stores in memory only: all are gone when the server stops");
  app.add_flag(
         "--verify", flags.verify,
         "Check all of --data-dir, print what it holds, and exit with 0 if it is whole, else 1")
      ->configurable(false);
  app.add_option("--threads", flags.threads, "Threads that scan rows; 0: one per core")
      ->check(CLI::Range(0, 1024));
  app.add_option_function<std::string>(
         "--kernel", [&flags](const std::string& name) { flags.kernel = *KernelOfName(name); },
         "Instructions that scan rows: the CPU's vectors (simd, auto) or its matrix unit (amx)")
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
  app.add_option(
         "--shutdown-grace", flags.shutdown_grace_seconds,
         "Seconds that running calls get to end after SIGTERM or SIGINT; then they are cancelled")
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
  file("--audit-log", flags.audit_log,
       "File with a line for every change, backup call, failed login and denial");
  app.add_flag("--insecure", flags.insecure,
               "Allow listening beyond loopback without TLS or without --auth, on a trusted "
               "network; else refused")
      ->group("Security");

  Limits& limits = flags.limits;
  const auto limit = [&app](const char* flag, std::int64_t& value, const char* what,
                            std::int64_t max) {
    app.add_option(flag, value, what)->group("Limits")->check(CLI::Range(std::int64_t{1}, max));
  };
  limit("--max-queries", limits.queries_per_lookup_max,
        "Maximum number of queries in a lookup; a lookup with more is refused", 1 << 20);
  limit("--max-append-rows", limits.rows_per_append_max,
        "Maximum number of rows in an append; an append with more is refused", 1 << 24);
  limit("--max-top-weights", limits.top_weights_max,
        "Maximum top_weights (weights listed per query); a lookup that asks for more is refused",
        1 << 20);
  limit("--max-message-bytes", limits.message_bytes_max,
        "Maximum bytes of one request or answer; a call with a larger one is refused",
        std::int64_t{1} << 30);
  limit("--max-stores", limits.store_count_max,
        "Maximum number of stores; creating more is refused", std::int64_t{1} << 32);
  limit("--max-waiting-lookups", limits.waiting_lookups_max,
        "Maximum number of lookups and other jobs that wait for a thread; more are refused at once",
        1 << 24);

  limit("--max-connections", flags.connections_max,
        "Maximum number of open gRPC connections; further ones are closed at once",
        std::int64_t{1} << 24);
  limit("--max-streams-per-connection", flags.streams_per_connection_max,
        "Maximum number of calls in progress on a connection; its client holds more back until "
        "some end",
        1 << 24);
  const auto number = [&app](const char* flag, double& value, const char* what, double min,
                             double max) {
    app.add_option(flag, value, what)->group("Limits")->check(CLI::Range(min, max));
  };
  constexpr double kDay = 86400;
  number("--max-waiting-work", flags.lookup_wait_ms_max,
         "Milliseconds: a lookup is refused if its wait plus work exceed both this and 4x its work "
         "alone",
         0, 1000 * kDay);
  number(
      "--keepalive-seconds", flags.keepalive_seconds,
      "Seconds of silence before a connection is pinged; it is closed if no answer comes in 20 s",
      1, kDay);
  number("--handshake-timeout", flags.handshake_timeout_seconds,
         "Seconds for a new connection to begin HTTP/2, TLS handshake included; else it is closed",
         0.1, kDay);
  number("--stall-timeout", flags.stall_timeout_seconds,
         "Seconds clients get to take a message, plus as many per whole MiB of an answer; else the "
         "call ends",
         0.1, kDay);
  number("--receive-timeout", flags.receive_timeout_seconds,
         "Seconds in which the first message of a call must arrive; else the call is ended", 0.1,
         kDay);
  number(
      "--revision-timeout", flags.revision_timeout_seconds,
      "Seconds that a lookup may wait until its store has reached its min_revision; then it fails",
      0.1, kDay);
  number("--tenant-requests-per-second", flags.tenant_requests_per_second,
         "Requests per second of a tenant (store name up to the first /); more are refused; 0: no "
         "limit",
         0, 1e12);
  number("--tenant-rows-per-second", flags.tenant_rows_per_second,
         "Rows appended plus queries per second of a tenant; more are refused; 0: no limit", 0,
         1e12);

  app.add_option("--request-memory", flags.request_bytes_max,
                 "Maximum bytes of all requests in progress, raw and parsed; requests beyond it "
                 "are refused")
      ->group("Limits")
      ->transform(CLI::Validator(RequestBytesToNumber, "SIZE"));
  app.add_option(
         "--ranking-memory", limits.ranking_bytes_max,
         "Maximum bytes in which running lookups keep the best rows for top_k; more are refused")
      ->group("Limits")
      ->transform(CLI::Validator(ByteSizeToNumber, "SIZE"));
  app.add_option("--memory-limit", limits.ram_bytes_max,
                 "Refuse writes once all stores take this many bytes, such as 4GiB; 0: no limit")
      ->group("Limits")
      ->transform(CLI::Validator(ByteSizeToNumber, "SIZE"));

  const std::vector<std::string> arguments = WithEnvironment(app, argc, argv);
  try {
    app.parse(std::vector<std::string>(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::cerr << "softlookup-server: " << FlagErrorLine(app, error, arguments)
              << "\nRun with --help for the flags.\n";
    return 2;
  }
  // CLI::Range() accepts NaN, since no comparison with NaN is true.
  const std::pair<const char*, double> numbers[] = {
      {"--shutdown-grace", flags.shutdown_grace_seconds},
      {"--max-waiting-work", flags.lookup_wait_ms_max},
      {"--keepalive-seconds", flags.keepalive_seconds},
      {"--handshake-timeout", flags.handshake_timeout_seconds},
      {"--stall-timeout", flags.stall_timeout_seconds},
      {"--receive-timeout", flags.receive_timeout_seconds},
      {"--revision-timeout", flags.revision_timeout_seconds},
      {"--tenant-requests-per-second", flags.tenant_requests_per_second},
      {"--tenant-rows-per-second", flags.tenant_rows_per_second}};
  for (const auto& [flag, value] : numbers) {
    if (std::isfinite(value)) continue;
    std::cerr << "softlookup-server: "
              << WithPlace(app, arguments, absl::StrCat(flag, ": not a number")) << "\n";
    return 2;
  }
  limits.lookup_wait_max = absl::Milliseconds(flags.lookup_wait_ms_max);
  if (ephemeral && !data_dir->empty()) {
    std::cerr << "softlookup-server: --ephemeral and --data-dir exclude each other\n";
    return 2;
  }
  if (ephemeral && flags.verify) {
    std::cerr << "softlookup-server: --verify checks a --data-dir, which --ephemeral has not\n";
    return 2;
  }
  if (ephemeral && !flags.backup_dir.empty()) {
    std::cerr << "softlookup-server: --ephemeral and --backup-dir exclude each other: what is in "
                 "memory only cannot be backed up\n";
    return 2;
  }
  if (ephemeral) {
    flags.data_dir.clear();
  } else if (flags.data_dir.empty()) {
    std::cerr << "softlookup-server: --data-dir: must not be empty; without it, use --ephemeral\n";
    return 2;
  }
  if (!ephemeral && IsSamePlace(flags.backup_dir, flags.data_dir)) {
    std::cerr << "softlookup-server: --backup-dir must not be the data directory itself\n";
    return 2;
  }
  if (!flags.audit_log.empty() && !flags.data_dir.empty() &&
      IsSamePlace(DirectoryOf(flags.audit_log), flags.data_dir)) {
    std::cerr << "softlookup-server: --audit-log must not be in the data directory\n";
    return 2;
  }
  if (flags.threads == 0) {
    flags.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  return std::nullopt;
}

}  // namespace softlookup::server
