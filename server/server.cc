#include "server/server.h"

#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "server/metrics_page.h"

namespace softlookup::server {
namespace {

// Long enough for a client that is listening to learn that it must go elsewhere.
constexpr absl::Duration kQuietBeforeCut = absl::Milliseconds(250);

// Calls are refused until none has come for so long, or at most for this.
constexpr absl::Duration kQuietBeforeShutdown = absl::Milliseconds(50);
constexpr absl::Duration kRefusingMax = absl::Milliseconds(500);

std::string JoinHostPort(const std::string& host, int port) {
  return host.find(':') == std::string::npos ? absl::StrCat(host, ":", port)
                                             : absl::StrCat("[", host, "]:", port);
}

// How long a peer that is asked whether it is alive has to answer.
constexpr absl::Duration kKeepaliveTimeout = absl::Seconds(20);
// Clients may ask this often.
constexpr absl::Duration kPingIntervalMin = absl::Seconds(10);

// Of a stream: what its client may send before it is read.
constexpr int kUnreadBytesMax = 128 << 10;

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

void BoundConnections(const Flags& flags, grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             static_cast<int>(flags.streams_per_connection_max));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             Milliseconds(absl::Seconds(flags.handshake_timeout_seconds)));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                             Milliseconds(absl::Seconds(flags.keepalive_seconds)));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(kKeepaliveTimeout));
  // Else every stream may have 4 MiB of requests that nobody has read yet. A message that is being
  // read gets the window that it needs.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kUnreadBytesMax);
  // Idle connections are asked, too, and however often.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             Milliseconds(kPingIntervalMin));
}

absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(const Flags& flags) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const KernelChoice choice, ChooseKernel(flags.kernel));
  spdlog::info("scans with kernel {}: {}", std::string(NameOf(choice.kernel)), choice.why);
  const EngineOptions options{.limits = flags.limits,
                              .thread_count = flags.threads,
                              .queries_per_pass_max = flags.share_queries,
                              .pass_wait_max = absl::Microseconds(flags.share_wait_us),
                              .kernel = choice.kernel};
  if (flags.data_dir.empty()) return Engine::Create(options);
  return Engine::Open(options, flags.data_dir);
}

class LoadLog final : public LoadObserver {
 public:
  void OnProgress(std::int64_t loaded, std::int64_t count) override {
    const absl::Time now = absl::Now();
    if (now - last_line_ < kInterval) return;
    last_line_ = now;
    spdlog::info("loaded {} of {} stores", loaded, count);
  }
  void OnStore(const StoreInfo& info) override {
    ++store_count_;
    row_count_ += info.row_count;
  }
  void OnDamage(const absl::Status& damage) override {
    spdlog::error("{}", std::string(damage.message()));
  }
  std::int64_t store_count() const { return store_count_; }
  std::uint64_t row_count() const { return row_count_; }

 private:
  static constexpr absl::Duration kInterval = absl::Seconds(1);

  absl::Time last_line_ = absl::Now();
  std::int64_t store_count_ = 0;
  std::uint64_t row_count_ = 0;
};

absl::Status Load(Engine& engine) {
  const absl::Time begin = absl::Now();
  LoadLog log;
  SOFTLOOKUP_RETURN_IF_ERROR(engine.Load(log));
  spdlog::info("loaded {} stores with {} rows in {:.3f} s", log.store_count(), log.row_count(),
               absl::ToDoubleSeconds(absl::Now() - begin));
  return absl::OkStatus();
}

}  // namespace

Server::Server(std::unique_ptr<Engine> engine, const Flags& flags)
    : observer_(absl::Milliseconds(flags.slow_lookup_ms)),
      calls_(observer_, {.stall_timeout = absl::Seconds(flags.stall_timeout_seconds),
                         .tenant_rates = {.requests_per_second = flags.tenant_requests_per_second,
                                          .rows_per_second = flags.tenant_rows_per_second}}),
      engine_(std::move(engine)),
      backups_(*engine_, flags.backup_dir),
      service_(calls_, *engine_),
      admin_service_(calls_, *engine_, backups_) {
  http_.set_metrics(
      [this] { return MetricsPage(*engine_, observer_, process_stats_, http_.ready()); });
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Flags& flags) {
  // Before anything else takes descriptors.
  const std::size_t connections_max =
      ConnectionsWithin(static_cast<std::size_t>(flags.connections_max));
  if (connections_max < static_cast<std::size_t>(flags.connections_max)) {
    spdlog::warn("serves at most {} connections: there are no more file descriptors (ulimit -n)",
                 connections_max);
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, MakeEngine(flags));
  std::unique_ptr<Server> server(new Server(std::move(engine), flags));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();

  const HostPort listen = *SplitHostPort(flags.listen);
  if (!server->listener_.Bind(listen.host, listen.port).ok()) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", flags.listen, " for gRPC; is the port taken?"));
  }
  grpc::ServerBuilder builder;
  server->acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::InsecureServerCredentials());
  BoundConnections(flags, builder);
  // Above the limit, so that a message somewhat over it still gets an error that says so; the
  // handlers keep the limit itself.
  constexpr std::int64_t kGrpcMax = std::numeric_limits<int>::max();
  builder.SetMaxReceiveMessageSize(
      static_cast<int>(std::min(2 * flags.limits.message_bytes_max, kGrpcMax)));
  builder.SetMaxSendMessageSize(static_cast<int>(kGrpcMax));
  builder.RegisterService(&server->service_);
  builder.RegisterService(&server->admin_service_);
  server->grpc_ = builder.BuildAndStart();
  if (server->grpc_ == nullptr) return absl::InternalError("cannot start gRPC");
  server->SetServing(false);
  SOFTLOOKUP_RETURN_IF_ERROR(server->listener_.Start(
      connections_max, kKeepaliveTimeout,
      [acceptor = server->acceptor_.get()](int listener, int fd) {
        grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
        connection.listener_fd = listener;
        connection.fd = fd;
        acceptor->HandleNewConnection(&connection);
      }));
  server->grpc_address_ = JoinHostPort(listen.host, server->listener_.port());

  const HostPort http = *SplitHostPort(flags.http_listen);
  SOFTLOOKUP_RETURN_IF_ERROR(server->http_.Start(http.host, http.port));
  server->http_address_ = JoinHostPort(http.host, server->http_.port());

  if (!flags.data_dir.empty()) {
    const absl::Status status = Load(*server->engine_);
    if (!status.ok()) {
      server->Stop(absl::ZeroDuration());  // Whoever is connected already may stay for ever.
      return status;
    }
  }
  server->SetServing(true);
  return server;
}

void Server::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface& health = *grpc_->GetHealthCheckService();
  health.SetServingStatus("", serving);
  health.SetServingStatus("softlookup.v1.SoftLookup", serving);
  http_.set_ready(serving);
}

void Server::Stop(absl::Duration grace) {
  http_.set_ready(false);
  grpc_->GetHealthCheckService()->Shutdown();
  listener_.Stop();
  const absl::Time deadline = absl::Now() + grace;
  calls_.DrainStreams();
  // A call that comes while gRPC begins to shut down is cancelled, which its client may not take
  // for a reason to try again. So new ones are told first.
  calls_.WaitUntilQuiet(kQuietBeforeShutdown, std::min(deadline, absl::Now() + kRefusingMax));
  std::thread shutdown([&] { grpc_->Shutdown(absl::ToChronoTime(deadline)); });
  // gRPC waits for every connection to say goodbye, and a client that is idle may not be listening.
  // Once no call is in progress, the connections that are left are cut.
  calls_.WaitUntilQuiet(kQuietBeforeCut, deadline);
  grpc_server_cancel_all_calls(grpc_->c_server());
  shutdown.join();
  grpc_->Wait();
}

}  // namespace softlookup::server
