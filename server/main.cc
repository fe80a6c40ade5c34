#include <google/protobuf/stubs/logging.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "absl/synchronization/mutex.h"
#include "client/cli/terminal_width.h"
#include "server/admin/verify.h"
#include "server/base/stop_signals.h"
#include "server/base/version.h"
#include "server/flags.h"
#include "server/observability/line_format.h"
#include "server/observability/server_log.h"
#include "server/process_lines.h"
#include "server/router.h"
#include "server/server.h"

namespace {

bool HasFailed(const softlookup::server::Server& server) { return server.has_failed(); }
bool HasFailed(const softlookup::server::Router&) { return false; }

// Runs a server or a router until a signal ends it. Returns the exit code.
template <typename Process>
int Run(const softlookup::server::Flags& flags, const sigset_t& signals) {
  auto process = Process::Start(flags, softlookup::server::IsStopRequested);
  if (absl::IsCancelled(process.status())) {
    spdlog::info("{}", std::string(process.status().message()));
    return 0;
  }
  if (!process.ok()) {
    std::cerr << "softlookup-server: " << process.status().message() << "\n";
    return 1;
  }
  spdlog::info("softlookup-server {} serves gRPC on {} {}, HTTP on {}, {}",
               softlookup::server::VersionText(), (*process)->grpc_address(),
               flags.tls_certificate.empty() ? "without TLS" : "with TLS",
               (*process)->http_address(), softlookup::server::PlaceOfStores(flags));
  std::printf("softlookup-server ready grpc=%s http=%s\n", (*process)->grpc_address().c_str(),
              (*process)->http_address().c_str());
  std::fflush(stdout);

  int signal = 0;
  while (sigwait(&signals, &signal) == 0 && signal == SIGHUP) {
    (*process)->Reload();
    spdlog::info("{}", softlookup::server::ReloadLine(flags));
  }
  spdlog::info("signal {}: takes no new calls, lets running ones end", signal);
  (*process)->Stop(absl::Seconds(flags.shutdown_grace_seconds));
  const bool has_failed = HasFailed(**process);
  process->reset();
  spdlog::info("stopped");
  return has_failed ? 1 : 0;
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

  return flags.router ? Run<Router>(flags, signals) : Run<Server>(flags, signals);
}
