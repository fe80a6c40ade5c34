#include "server/server.h"

#include <grpcpp/resource_quota.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "server/admin/backup_directory.h"
#include "server/admin/data_directory.h"
#include "server/flag_text.h"
#include "server/observability/line_format.h"
#include "server/observability/metrics_page.h"
#include "server/open_replica.h"
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

// A message that exceeds the limit on messages by at most this many bytes gets the server's own
// error, with details. gRPC itself refuses larger ones.
constexpr std::int64_t kMessageSlack = std::int64_t{4} << 20;

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

// Checks that `flags.data_dir` is a data directory, or can become one. Warns if it will become one.
absl::Status CheckDataDirectory(const Flags& flags) {
  if (flags.data_dir.empty()) return absl::OkStatus();
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      const DataDirectoryState state,
      InspectDataDirectory(flags.data_dir,
                           {flags.backup_dir, flags.audit_log, flags.tls_certificate, flags.tls_key,
                            flags.tls_client_ca, flags.auth}));
  if (state == DataDirectoryState::kNew) WarnOfNewDataDirectory(flags.data_dir);
  return absl::OkStatus();
}

// Does what OpenEngine() does, which can take hours for a new replica. Meanwhile answers HTTP on
// `listener`: the server is alive, and not ready.
absl::StatusOr<OpenedEngine> OpenWhileAnswering(const FileDescriptor& listener, const Flags& flags,
                                                std::shared_ptr<EngineObserver> observer,
                                                const std::function<bool()>& should_stop) {
  const AdminPages pages([] { return false; }, [] { return std::string(); });
  HttpServer http([&pages](const std::string& request) { return pages.Answer(request); });
  SOFTLOOKUP_RETURN_IF_ERROR(http.Start(FileDescriptor(dup(listener.get()))));
  return OpenEngine(flags, std::move(observer), should_stop);
}

// Returns a function that reads the figures of the disks that a server writes to. The function owns
// its paths, because it may outlive the server (see DiskWatch).
DiskWatch::Read ReaderOfDisks(const Flags& flags) {
  return [data_dir = flags.data_dir, backup_dir = flags.backup_dir] {
    DiskStats stats;
    for (const auto& [name, path] : {std::pair("data", data_dir), {"backup", backup_dir}}) {
      if (path.empty()) continue;
      std::optional<DiskSpace> space = ReadDiskSpace(name, path);
      if (space.has_value()) stats.spaces.push_back(*std::move(space));
    }
    if (!backup_dir.empty()) {
      stats.newest_backup = BackupDirectory(backup_dir).NewestTime(absl::Now());
    }
    return stats;
  };
}

}  // namespace

Server::Server(OpenedEngine opened, std::shared_ptr<EngineLog> engine_log,
               std::unique_ptr<AuditLog> audit, std::unique_ptr<GrpcPort> grpc_port,
               const Flags& flags)
    : audit_(std::move(audit)),
      engine_log_(std::move(engine_log)),
      observer_(absl::Milliseconds(flags.slow_lookup_ms)),
      limiters_(CallLimitsOf(flags)),
      opened_(std::move(opened)),
      disk_watch_(ReaderOfDisks(flags)),
      backups_([this](const std::string& directory) { return engine_.CopyTo(directory); },
               [this] { return engine_.DamagedStores(); }, flags.backup_dir,
               [this] { disk_watch_.ReadSoon(); }),
      service_({.calls = calls_,
                .streams = streams_,
                .limiters = limiters_,
                .authenticator = authenticator_,
                .observer = observer_,
                .engine_log = *engine_log_,
                .audit = audit_.get(),
                .refusals = refusals_},
               engine_, backups_, health_,
               {.replication = opened_.replication,
                .name = {.cluster = flags.cluster, .group = flags.group, .node = flags.node}}),
      heap_trim_([stats = std::make_shared<ProcessStats>()] { return stats->resident_bytes(); }),
      pages_([this] { return health_.is_serving(); },
             [this] {
               return MetricsPage(engine_, opened_.replication, observer_.metrics(), process_stats_,
                                  disk_watch_.latest(), security_stats(), health_.is_serving());
             }),
      grpc_port_(std::move(grpc_port)),
      rpcs_([this](Rpc& rpc) { service_.Begin(rpc); },
            [this](const Rpc& rpc) { CountCancel(rpc, limiters_.connections); }) {
  limiters_.connections.set_cut(
      [this](const std::string& peer, absl::string_view why) { grpc_port_->Cut(peer, why); });
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Flags& flags,
                                                      const std::function<bool()>& should_stop) {
  // Raises the limit on descriptors, so this must come before anything opens many files.
  const std::size_t connections_max =
      RaiseDescriptorLimitFor(static_cast<std::size_t>(flags.connections_max));
  if (connections_max < static_cast<std::size_t>(flags.connections_max)) {
    spdlog::warn("serves at most {} connections: there are no more file descriptors (ulimit -n)",
                 connections_max);
  }
  // What the flags alone refuse is refused before the data directory is made or changed.
  SOFTLOOKUP_RETURN_IF_ERROR(CheckSecurityFiles(flags));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckReplicaFiles(flags));
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::unique_ptr<GrpcPort> grpc_port,
                              ListenForGrpc(flags, connections_max));
  const HostPort http = *SplitHostPort(flags.http_listen);
  SOFTLOOKUP_ASSIGN_OR_RETURN(FileDescriptor http_listener, ListenForHttp(http.host, http.port));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckDataDirectory(flags));
  if (!flags.backup_dir.empty()) {
    SOFTLOOKUP_RETURN_IF_ERROR(BackupDirectory(flags.backup_dir).Prepare());
  }
  std::unique_ptr<AuditLog> audit;
  if (!flags.audit_log.empty()) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(audit,
                                AuditLog::Open(flags.audit_log, LineFormatOf(flags.log_format)));
  }
  const auto engine_log = std::make_shared<EngineLog>();
  SOFTLOOKUP_ASSIGN_OR_RETURN(OpenedEngine opened,
                              OpenWhileAnswering(http_listener, flags, engine_log, should_stop));
  std::unique_ptr<Server> server(
      new Server(std::move(opened), engine_log, std::move(audit), std::move(grpc_port), flags));
  SOFTLOOKUP_RETURN_IF_ERROR(server->LoadSecurity(flags));
  SOFTLOOKUP_RETURN_IF_ERROR(server->ServeGrpc(flags));

  server->grpc_address_ =
      JoinHostPort(SplitHostPort(flags.listen)->host, server->grpc_port_->port());
  SOFTLOOKUP_RETURN_IF_ERROR(server->http_.Start(std::move(http_listener)));
  server->http_address_ = JoinHostPort(http.host, server->http_.port());

  if (!flags.data_dir.empty()) {
    const absl::Status status = LoadEngine(server->opened_, should_stop);
    if (!status.ok()) {
      server->Stop(absl::ZeroDuration());  // The destructor would wait for clients to leave.
      return status;
    }
  }
  server->health_.SetServing(true);
  return server;
}

absl::Status Server::LoadSecurity(const Flags& flags) {
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

absl::Status Server::ServeGrpc(const Flags& flags) {
  grpc::ServerBuilder builder;
  std::shared_ptr<grpc::ServerCredentials> credentials = tls_;
  if (credentials == nullptr) credentials = grpc::InsecureServerCredentials();
  grpc_port_->AddTo(builder, credentials);
  // gRPC's limit is above the server's, so that a message slightly too large still gets the
  // server's own error. MessageReceiver::Receive() checks the server's limit.
  constexpr std::int64_t kGrpcMax = std::numeric_limits<int>::max();
  builder.SetMaxReceiveMessageSize(
      static_cast<int>(std::min(flags.limits.message_bytes_max + kMessageSlack, kGrpcMax)));
  builder.SetMaxSendMessageSize(static_cast<int>(kGrpcMax));
  // Bounds the bytes that gRPC holds of messages that have not arrived whole. No other budget
  // counts these bytes.
  builder.SetResourceQuota(grpc::ResourceQuota("softlookup")
                               .Resize(static_cast<std::size_t>(2 * flags.request_bytes_max)));
  const int threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 2, 16);
  SOFTLOOKUP_RETURN_IF_ERROR(rpcs_.Start(builder, threads));
  return grpc_port_->Start();
}

SecurityStats Server::security_stats() const {
  SecurityStats stats{.tls = tls_reloads_.counts(), .auth = auth_reloads_.counts()};
  if (tls_ != nullptr) stats.certificate_end = tls_->certificate_end();
  return stats;
}

bool Server::has_failed() const {
  return opened_.replication != nullptr && !opened_.replication->failure().ok();
}

void Server::Reload() {
  files_.CheckNow();
  if (audit_ != nullptr) audit_->Reopen();
}

void Server::Stop(absl::Duration grace) {
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
  std::thread shutdown([&] { rpcs_.Shutdown(deadline); });
  // gRPC waits until every client has closed its connection, but an idle client might not read its
  // connection and so never close it. So the server closes the connections that are left, once no
  // call has been in progress for kQuietBeforeCut or the deadline is past.
  calls_.WaitUntilQuiet(kQuietBeforeCut, deadline);
  rpcs_.CancelAll();
  shutdown.join();
  rpcs_.Wait();
}

}  // namespace softlookup::server
