#include "server/front_end.h"

#include <grpcpp/resource_quota.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "server/base/host_port.h"
#include "server/call_transport.h"
#include "server/observability/line_format.h"
#include "server/rpc/early_cancel.h"
#include "server/security/auth_rules.h"

namespace softlookup::server {
namespace {

// Stop() closes the remaining connections once no call has been in progress for this time. By then,
// a client that reads its connection has learned that it must connect elsewhere.
constexpr absl::Duration kQuietBeforeCut = absl::Milliseconds(250);

// Before gRPC begins to shut down, Stop() waits until no call has been in progress for
// kQuietBeforeShutdown, but at most kRefusingMax. It refuses new calls meanwhile.
constexpr absl::Duration kQuietBeforeShutdown = absl::Milliseconds(50);
constexpr absl::Duration kRefusingMax = absl::Milliseconds(500);

// Interval of the checks for changed certificates and auth files. A change takes effect after at
// most about this time.
constexpr absl::Duration kFileInterval = absl::Seconds(2);

CallLimits CallLimitsOf(const Flags& flags) {
  return {.engine = flags.limits,
          .stall_timeout = absl::Seconds(flags.stall_timeout_seconds),
          .receive_timeout = absl::Seconds(flags.receive_timeout_seconds),
          .revision_wait_max = absl::Seconds(flags.revision_timeout_seconds),
          .tenant_rates = {.requests_per_second = flags.tenant_requests_per_second,
                           .rows_per_second = flags.tenant_rows_per_second},
          .calls_per_connection_max = static_cast<std::size_t>(flags.streams_per_connection_max),
          .request_bytes_max = flags.request_bytes_max};
}

ConnectionBounds ConnectionBoundsOf(const Flags& flags, std::size_t connections_max) {
  return {.connections_max = connections_max,
          .streams_per_connection_max = static_cast<int>(flags.streams_per_connection_max),
          .handshake_timeout = absl::Seconds(flags.handshake_timeout_seconds),
          .keepalive = absl::Seconds(flags.keepalive_seconds)};
}

// The functions that get the contents of the certificates and of the auth file, and the counters of
// the times that these are loaded again.
struct SecurityUser {
  std::function<void(TlsConfig)> use_tls;
  std::function<void(std::shared_ptr<const AuthRules>)> use_rules;
  ReloadCounter& tls_reloads;
  ReloadCounter& auth_reloads;
};

// Adds the certificates and the auth file that `flags` name to `files`. Passes their contents to
// the functions of `user`, at once and after each change.
absl::Status AddSecurityFiles(const Flags& flags, SecurityUser user, FileWatcher& files) {
  if (!flags.tls_certificate.empty()) {
    std::vector<std::string> paths = {flags.tls_certificate, flags.tls_key};
    if (!flags.tls_client_ca.empty()) paths.push_back(flags.tls_client_ca);
    SOFTLOOKUP_RETURN_IF_ERROR(files.Add(
        "the TLS certificate", std::move(paths),
        [use_tls =
             std::move(user.use_tls)](const std::vector<std::string>& contents) -> absl::Status {
          TlsConfig config{.certificate = contents[0], .private_key = contents[1]};
          if (contents.size() > 2) config.client_ca = contents[2];
          SOFTLOOKUP_RETURN_IF_ERROR(CheckTlsConfig(config));
          use_tls(std::move(config));
          return absl::OkStatus();
        },
        user.tls_reloads));
  }
  if (flags.auth.empty()) return absl::OkStatus();
  return files.Add(
      "the auth file", {flags.auth},
      [use_rules = std::move(user.use_rules),
       path = flags.auth](const std::vector<std::string>& contents) -> absl::Status {
        absl::StatusOr<std::shared_ptr<const AuthRules>> rules = AuthRules::Parse(contents[0]);
        if (!rules.ok()) {
          return absl::InvalidArgumentError(
              absl::StrCat("--auth ", path, ": ", rules.status().message()));
        }
        use_rules(*std::move(rules));
        return absl::OkStatus();
      },
      user.auth_reloads);
}

// Reads the certificates and the auth file, and returns what is wrong with them.
absl::Status CheckSecurityFiles(const Flags& flags) {
  ReloadCounter unused;
  FileWatcher files;
  return AddSecurityFiles(flags,
                          {.use_tls = [](TlsConfig) {},
                           .use_rules = [](std::shared_ptr<const AuthRules>) {},
                           .tls_reloads = unused,
                           .auth_reloads = unused},
                          files);
}

// Listens for gRPC. FAILED_PRECONDITION if that would let other machines in without asking who they
// are.
absl::StatusOr<std::unique_ptr<GrpcPort>> ListenForGrpc(const Flags& flags,
                                                        std::size_t connections_max) {
  auto port = std::make_unique<GrpcPort>(ConnectionBoundsOf(flags, connections_max));
  const HostPort listen = *SplitHostPort(flags.listen);
  if (const absl::Status bound = port->Bind(listen.host, listen.port); !bound.ok()) {
    return absl::UnavailableError(
        absl::StrCat("--listen: cannot listen on ", flags.listen, " for gRPC: ", bound.message()));
  }
  const bool is_safe = !flags.tls_certificate.empty() && !flags.auth.empty();
  if (port->is_loopback() || is_safe || flags.insecure) return port;
  return absl::FailedPreconditionError(absl::StrCat(
      "--listen ", flags.listen,
      " lets other machines in, so it takes --tls-certificate with --tls-key, and --auth "
      "(`softlookup tls init` and `softlookup auth add` make them); or listen on 127.0.0.1; or "
      "say --insecure if everybody on that network may do everything"));
}

}  // namespace

FrontEnd::FrontEnd(const Flags& flags, std::unique_ptr<GrpcPort> grpc_port)
    : observer_(absl::Milliseconds(flags.slow_lookup_ms)),
      limiters_(CallLimitsOf(flags)),
      grpc_port_(std::move(grpc_port)) {
  limiters_.connections.set_cut(
      [this](const std::string& peer, absl::string_view why) { grpc_port_->Cut(peer, why); });
}

absl::StatusOr<std::unique_ptr<FrontEnd>> FrontEnd::Listen(const Flags& flags,
                                                           std::size_t other_connections) {
  const std::size_t all_connections =
      RaiseDescriptorLimitFor(static_cast<std::size_t>(flags.connections_max) + other_connections);
  const std::size_t connections_max =
      all_connections > other_connections ? all_connections - other_connections : 1;
  if (connections_max < static_cast<std::size_t>(flags.connections_max)) {
    spdlog::warn("serves at most {} connections: there are no more file descriptors (ulimit -n)",
                 connections_max);
  }
  SOFTLOOKUP_RETURN_IF_ERROR(CheckSecurityFiles(flags));
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::unique_ptr<GrpcPort> port,
                              ListenForGrpc(flags, connections_max));
  std::unique_ptr<FrontEnd> front_end(new FrontEnd(flags, std::move(port)));
  front_end->address_ =
      JoinHostPort(SplitHostPort(flags.listen)->host, front_end->grpc_port_->port());
  return front_end;
}

absl::Status FrontEnd::OpenAuditLog(const Flags& flags) {
  if (flags.audit_log.empty()) return absl::OkStatus();
  SOFTLOOKUP_ASSIGN_OR_RETURN(audit_,
                              AuditLog::Open(flags.audit_log, LineFormatOf(flags.log_format)));
  return absl::OkStatus();
}

CallDependencies FrontEnd::dependencies() {
  return {.calls = calls_,
          .streams = streams_,
          .limiters = limiters_,
          .authenticator = authenticator_,
          .observer = observer_,
          .engine_log = *engine_log_,
          .audit = audit_.get(),
          .refusals = refusals_};
}

absl::Status FrontEnd::LoadSecurity(const Flags& flags) {
  if (!flags.tls_certificate.empty()) {
    tls_ = std::make_shared<TlsCredentials>(
        /*clients_need_certificates=*/!flags.tls_client_ca.empty());
  }
  auto use_tls = [this](TlsConfig config) {
    if (const auto warning = CertificateWarning(config, absl::Now())) spdlog::warn("{}", *warning);
    tls_->Set(std::move(config));
  };
  auto use_rules = [this, asks_certificates = !flags.tls_client_ca.empty()](
                       std::shared_ptr<const AuthRules> rules) {
    if (!asks_certificates && !rules->certificate_only().empty()) {
      spdlog::warn(
          "{} identities of the auth file, such as {}, have no token, and without --tls-client-ca "
          "no certificate tells who they are: nobody can call as one of them",
          rules->certificate_only().size(), rules->certificate_only().front());
    }
    authenticator_.SetRules(std::move(rules));
    streams_.Recheck();
  };
  SecurityUser user{.use_tls = std::move(use_tls),
                    .use_rules = std::move(use_rules),
                    .tls_reloads = tls_reloads_,
                    .auth_reloads = auth_reloads_};
  SOFTLOOKUP_RETURN_IF_ERROR(AddSecurityFiles(flags, std::move(user), files_));
  files_.Start(kFileInterval);
  return absl::OkStatus();
}

absl::Status FrontEnd::Serve(const Flags& flags, RpcServer::Accept accept) {
  SOFTLOOKUP_RETURN_IF_ERROR(LoadSecurity(flags));
  grpc::ServerBuilder builder;
  std::shared_ptr<grpc::ServerCredentials> credentials = tls_;
  if (credentials == nullptr) credentials = grpc::InsecureServerCredentials();
  grpc_port_->AddTo(builder, credentials);
  const CallTransport transport = CallTransportOf(flags);
  builder.SetMaxReceiveMessageSize(transport.message_bytes_max);
  builder.SetMaxSendMessageSize(std::numeric_limits<int>::max());
  builder.SetResourceQuota(grpc::ResourceQuota("softlookup").Resize(transport.bytes_max));
  rpcs_ = std::make_unique<RpcServer>(
      std::move(accept), [this](const Rpc& rpc) { CountCancel(rpc, limiters_.connections); });
  SOFTLOOKUP_RETURN_IF_ERROR(rpcs_->Start(builder, transport.thread_count));
  return grpc_port_->Start();
}

SecurityStats FrontEnd::security_stats() const {
  SecurityStats stats{.tls = tls_reloads_.counts(), .auth = auth_reloads_.counts()};
  if (tls_ != nullptr) stats.certificate_end = tls_->certificate_end();
  return stats;
}

void FrontEnd::Reload() {
  files_.CheckNow();
  if (audit_ != nullptr) audit_->Reopen();
}

void FrontEnd::Stop(absl::Duration grace) {
  health_.SetServing(false);
  grpc_port_->Stop();
  const absl::Time deadline = absl::Now() + grace;
  streams_.Drain();
  // gRPC cancels a call that comes while gRPC begins to shut down, and a client might not retry
  // after CANCELLED. So before that, the server refuses new calls with SHUTTING_DOWN for a short
  // time.
  calls_.WaitUntilQuiet(kQuietBeforeShutdown, std::min(deadline, absl::Now() + kRefusingMax));
  // Ends the calls whose first message has not come.
  limiters_.arrivals.EndAll("SHUTTING_DOWN: the server is stopping");
  std::thread shutdown([&] { rpcs_->Shutdown(deadline); });
  // gRPC waits until every client has closed its connection, but an idle client might not read its
  // connection and so never close it. So the server closes the connections that are left, once no
  // call has been in progress for kQuietBeforeCut or the deadline is past.
  calls_.WaitUntilQuiet(kQuietBeforeCut, deadline);
  rpcs_->CancelAll();
  shutdown.join();
  rpcs_->Wait();
}

}  // namespace softlookup::server
