#include "server/server.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "server/admin/backup_directory.h"
#include "server/admin/data_directory.h"
#include "server/base/host_port.h"
#include "server/cluster_files.h"
#include "server/observability/metrics_page.h"
#include "server/open_replica.h"

namespace softlookup::server {
namespace {

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

void LogRefusedTenant(const std::string& tenant, const absl::Status& why) {
  spdlog::error(
      "tenant {} has stores here and does not belong to this group: {}. They are still served "
      "here, and no others can be made. Rename them to another tenant, or make them in the "
      "tenant's group and delete them here",
      tenant, std::string(why.message()));
}

}  // namespace

Server::Server(OpenedEngine opened, std::unique_ptr<RouterCalls> router_calls,
               std::unique_ptr<FrontEnd> front_end, const Flags& flags)
    : front_end_(std::move(front_end)),
      opened_(std::move(opened)),
      disk_watch_(ReaderOfDisks(flags)),
      backups_([this](const std::string& directory) { return engine_.CopyTo(directory); },
               [this] { return engine_.DamagedStores(); }, flags.backup_dir,
               [this] { disk_watch_.ReadSoon(); }),
      service_(front_end_->dependencies(), engine_, backups_, front_end_->health(),
               {.replication = opened_.replication, .name = ReplicaNameOf(flags)}),
      heap_trim_([stats = std::make_shared<ProcessStats>()] { return stats->resident_bytes(); }),
      pages_([this] { return front_end_->health().is_serving(); },
             [this, name = ReplicaNameOf(flags)] {
               return MetricsPage(engine_, opened_.replication, name, front_end_->metrics(),
                                  process_stats_, disk_watch_.latest(),
                                  front_end_->security_stats(), front_end_->health().is_serving());
             }),
      router_calls_(std::move(router_calls)) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Flags& flags,
                                                      const std::function<bool()>& should_stop) {
  // Raises the limit on descriptors, so this must come before anything opens many files. And what
  // the flags alone refuse is refused before the data directory is made or changed.
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      std::unique_ptr<FrontEnd> front_end,
      FrontEnd::Listen(flags, flags.cluster_listen.empty() ? 0 : kPeerConnectionsMax));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckClusterFiles(flags));
  const HostPort http = *SplitHostPort(flags.http_listen);
  SOFTLOOKUP_ASSIGN_OR_RETURN(FileDescriptor http_listener, ListenForHttp(http.host, http.port));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckDataDirectory(flags));
  if (!flags.backup_dir.empty()) {
    SOFTLOOKUP_RETURN_IF_ERROR(BackupDirectory(flags.backup_dir).Prepare());
  }
  SOFTLOOKUP_RETURN_IF_ERROR(front_end->OpenAuditLog(flags));
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      OpenedEngine opened,
      OpenWhileAnswering(http_listener, flags, front_end->engine_log(), should_stop));
  std::unique_ptr<RouterCalls> router_calls = std::move(opened.router_calls);
  std::unique_ptr<Server> server(
      new Server(std::move(opened), std::move(router_calls), std::move(front_end), flags));
  Service& service = server->service_;
  SOFTLOOKUP_RETURN_IF_ERROR(server->front_end_->Serve(
      flags, [&service](Rpc& rpc) { service.Begin(rpc, CallOrigin::kClient); }));
  if (server->router_calls_ != nullptr) {
    server->router_calls_->Serve([&service](Rpc& rpc) { service.Begin(rpc, CallOrigin::kRouter); });
  }
  SOFTLOOKUP_RETURN_IF_ERROR(server->http_.Start(std::move(http_listener)));
  server->http_address_ = JoinHostPort(http.host, server->http_.port());

  if (!flags.data_dir.empty()) {
    const absl::Status status = LoadEngine(server->opened_, should_stop);
    if (!status.ok()) {
      server->Stop(absl::ZeroDuration());  // The destructor would wait for clients to leave.
      return status;
    }
  }
  if (server->opened_.replication != nullptr) {
    server->stored_tenants_ = std::make_unique<StoredTenants>(
        server->engine_, *server->opened_.replication, LogRefusedTenant);
  }
  server->front_end_->health().SetServing(true);
  return server;
}

bool Server::has_failed() const {
  return opened_.replication != nullptr && !opened_.replication->failure().ok();
}

void Server::Stop(absl::Duration grace) {
  if (router_calls_ != nullptr) router_calls_->Refuse();
  front_end_->Stop(grace);
  if (router_calls_ != nullptr) router_calls_->Stop();
}

}  // namespace softlookup::server
