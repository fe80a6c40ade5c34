#include <google/protobuf/stubs/logging.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "client/cli/terminal_width.h"
#include "server/admin/verify.h"
#include "server/base/stop_signals.h"
#include "server/base/version.h"
#include "server/flags.h"
#include "server/observability/line_format.h"
#include "server/observability/server_log.h"
#include "server/server.h"

namespace {

// What the server log says of a SIGHUP: which files the server has read again, and what it has not.
std::string ReloadLine(const softlookup::server::Flags& flags) {
  std::vector<std::string> done;
  if (!flags.tls_certificate.empty()) done.push_back("looked at the certificates for changes");
  if (!flags.auth.empty()) done.push_back("looked at the auth file for changes");
  if (!flags.audit_log.empty()) done.push_back("opened the audit log anew");
  return absl::StrCat(
      "SIGHUP: ",
      done.empty() ? "there are no certificates, no auth file and no audit log to read again"
                   : absl::StrJoin(done, ", "),
      flags.config.empty() ? "; flags are read"
                           : absl::StrCat("; flags and --config ", flags.config, " are read"),
      " at the start only");
}

}  // namespace

int main(int argc, char** argv) {
  using namespace softlookup::server;
  // Turns off protobuf's lines about malformed messages. Their senders get an error instead.
  google::protobuf::SetLogHandler(nullptr);
  // Turns off Abseil's deadlock detection. In Debian's build it runs whenever a mutex is locked,
  // under one global lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const sigset_t signals = BlockSignals();
  umask(077);  // Only the owner may read data, backups and the audit log.
  Flags flags;
  if (const auto exit_code = ParseFlags(argc, argv, flags, softlookup::cli::TerminalWidth())) {
    return *exit_code;
  }
  if (flags.verify) return VerifyDataDirectory(flags.data_dir, std::cout) ? 0 : 1;
  SetUpServerLog(LineFormatOf(flags.log_format), flags.log_level);
  for (const std::string& warning : flags.warnings) spdlog::warn("{}", warning);

  auto server = Server::Start(flags, IsStopRequested);
  if (absl::IsCancelled(server.status())) {
    spdlog::info("{}", std::string(server.status().message()));
    return 0;
  }
  if (!server.ok()) {
    std::cerr << "softlookup-server: " << server.status().message() << "\n";
    return 1;
  }
  spdlog::info(
      "softlookup-server {} serves gRPC on {} {}, HTTP on {}, scans with {} threads, keeps "
      "everything in {}",
      VersionText(), (*server)->grpc_address(),
      flags.tls_certificate.empty() ? "without TLS" : "with TLS", (*server)->http_address(),
      flags.threads, flags.data_dir.empty() ? "memory" : flags.data_dir);
  std::printf("softlookup-server ready grpc=%s http=%s\n", (*server)->grpc_address().c_str(),
              (*server)->http_address().c_str());
  std::fflush(stdout);

  int signal = 0;
  while (sigwait(&signals, &signal) == 0 && signal == SIGHUP) {
    (*server)->Reload();
    spdlog::info("{}", ReloadLine(flags));
  }
  spdlog::info("signal {}: takes no new calls, lets running ones end", signal);
  (*server)->Stop(absl::Seconds(flags.shutdown_grace_seconds));
  const bool has_failed = (*server)->has_failed();
  server->reset();
  spdlog::info("stopped");
  return has_failed ? 1 : 0;
}
