#include "server/cluster/peer_server.h"

#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/status_macros.h"
#include "server/cluster/peer_protocol.h"
#include "server/cluster/seed_copy.h"
#include "server/cluster/sha256_stream.h"
#include "server/cluster/shared_limit.h"

namespace softlookup::server {
namespace {

// Each call has a thread. Some more answer the calls beyond PeerServer::kCallsMax.
constexpr int kPeerThreadsMax = PeerServer::kCallsMax + 16;
// Bytes that gRPC itself holds of PeerServer's calls, above all of messages that have not arrived
// whole.
constexpr std::size_t kTransportBytesMax = std::size_t{256} << 20;
// How often a call that waits looks whether it was cancelled.
constexpr absl::Duration kCancelInterval = absl::Milliseconds(100);

absl::Status CallCancelled() { return absl::CancelledError("The call was cancelled"); }

// FAILED_PRECONDITION if the caller means another replica's `what`.
absl::Status CheckName(absl::string_view what, absl::string_view meant, absl::string_view ours) {
  if (meant == ours) return absl::OkStatus();
  constexpr std::size_t kShownBytes = 100;
  return absl::FailedPreconditionError(absl::StrCat("The call is for ", what, " \"",
                                                    absl::CHexEscape(meant.substr(0, kShownBytes)),
                                                    "\", and this is ", what, " \"", ours, "\""));
}

absl::Status CheckDigest(absl::string_view name, const std::string& digest) {
  if (IsSha256(digest)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("`", name, "` is not a SHA-256"));
}

// What PeerRequests answers to a call. It may come after the call has ended. Thread-safe.
template <typename T>
class PeerAnswer {
 public:
  void Set(T answer) {
    absl::MutexLock lock(&mutex_);
    answer_ = std::move(answer);
  }
  // Waits for the answer. CANCELLED if the call ends before.
  T Await(const grpc::ServerContext& context) {
    const absl::Time deadline = absl::FromChrono(context.deadline());
    const auto has_answer = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return answer_.has_value();
    };
    absl::MutexLock lock(&mutex_);
    while (!mutex_.AwaitWithTimeout(absl::Condition(&has_answer), kCancelInterval)) {
      if (context.IsCancelled() || absl::Now() > deadline) return CallCancelled();
    }
    return *std::move(answer_);
  }

 private:
  absl::Mutex mutex_;
  std::optional<T> answer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

class PeerServer::Service final : public cluster::v1::PeerService::Service {
 public:
  Service(ReplicaName name, std::string scratch_directory, PeerRequests& requests)
      : name_(std::move(name)),
        scratch_directory_(std::move(scratch_directory)),
        requests_(requests) {}

  grpc::Status Stage(grpc::ServerContext* context,
                     grpc::ServerReader<cluster::v1::StageRequest>* reader,
                     cluster::v1::StageResponse*) override {
    return ToPeerStatus(Stage(*context, *reader));
  }
  grpc::Status Fetch(grpc::ServerContext* context, const cluster::v1::FetchRequest* request,
                     grpc::ServerWriter<cluster::v1::FetchResponse>* writer) override {
    return ToPeerStatus(Fetch(*context, *request, *writer));
  }
  grpc::Status Seed(grpc::ServerContext* context, const cluster::v1::SeedRequest* request,
                    grpc::ServerWriter<cluster::v1::SeedResponse>* writer) override {
    return ToPeerStatus(Seed(*context, *request, *writer));
  }

 private:
  absl::Status Stage(const grpc::ServerContext& context,
                     grpc::ServerReader<cluster::v1::StageRequest>& reader);
  absl::Status Fetch(const grpc::ServerContext& context, const cluster::v1::FetchRequest& request,
                     grpc::ServerWriter<cluster::v1::FetchResponse>& writer);
  absl::Status Seed(const grpc::ServerContext& context, const cluster::v1::SeedRequest& request,
                    grpc::ServerWriter<cluster::v1::SeedResponse>& writer);

  // Counts a call until what this returns is destroyed. INVALID_ARGUMENT if the call may take
  // longer than `timeout_max`.
  absl::StatusOr<SharedLimit::Share> Admit(const grpc::ServerContext& context,
                                           absl::Duration timeout_max);
  absl::Status Check(const cluster::v1::Caller& caller) const;
  absl::StatusOr<SharedLimit::Share> TakeEntryBytes(std::uint64_t size);
  // Reads the header of a Stage, and returns the entry without its bytes.
  absl::StatusOr<Entry> ReadHeader(const cluster::v1::StageHeader& header) const;
  // Sends the file `name` of `copy`, without what the caller has of it. `kept` is what it has of a
  // file of this name, or null.
  absl::Status SendFile(const SeedCopy& copy, const std::string& name,
                        const cluster::v1::KeptFile* kept,
                        grpc::ServerWriter<cluster::v1::SeedResponse>& writer) const;

  const ReplicaName name_;
  const std::string scratch_directory_;
  PeerRequests& requests_;
  SharedLimit calls_{kCallsMax};
  SharedLimit entry_bytes_{kEntryBytesMax};
  SharedLimit seeds_{kSeedsMax};
};

absl::Status PeerServer::Service::Stage(const grpc::ServerContext& context,
                                        grpc::ServerReader<cluster::v1::StageRequest>& reader) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const SharedLimit::Share call, Admit(context, kPeerCallTimeoutMax));
  cluster::v1::StageRequest request;
  if (!reader.Read(&request)) {
    if (context.IsCancelled()) return CallCancelled();
    return absl::InvalidArgumentError("A Stage has no request");
  }
  if (!request.has_header()) {
    return absl::InvalidArgumentError("The first request of a Stage has no header");
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(Entry entry, ReadHeader(request.header()));
  const std::uint64_t size = request.header().size();
  SOFTLOOKUP_ASSIGN_OR_RETURN(SharedLimit::Share bytes, TakeEntryBytes(size));
  while (reader.Read(&request)) {
    if (!request.has_chunk()) {
      return absl::InvalidArgumentError("A request after the first one of a Stage has no chunk");
    }
    SOFTLOOKUP_RETURN_IF_ERROR(AppendChunk(request.chunk(), size, entry.bytes));
  }
  if (context.IsCancelled()) return CallCancelled();
  if (entry.bytes.size() != size) {
    return absl::InvalidArgumentError(
        absl::StrCat(entry.bytes.size(), " bytes came of the ", size, " that were announced"));
  }
  const auto answer = std::make_shared<PeerAnswer<absl::Status>>();
  requests_.OnStage(std::move(entry), [answer, bytes = std::move(bytes)](absl::Status result) {
    answer->Set(std::move(result));
  });
  return answer->Await(context);
}

absl::Status PeerServer::Service::Fetch(const grpc::ServerContext& context,
                                        const cluster::v1::FetchRequest& request,
                                        grpc::ServerWriter<cluster::v1::FetchResponse>& writer) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const SharedLimit::Share call, Admit(context, kPeerCallTimeoutMax));
  SOFTLOOKUP_RETURN_IF_ERROR(Check(request.caller()));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckDigest("digest", request.digest()));
  const auto answer = std::make_shared<PeerAnswer<absl::StatusOr<std::string>>>();
  requests_.OnFetch(
      request.sequence(), request.digest(),
      [answer](absl::StatusOr<std::string> result) { answer->Set(std::move(result)); });
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::string bytes, answer->Await(context));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const SharedLimit::Share taken, TakeEntryBytes(bytes.size()));
  cluster::v1::FetchResponse response;
  response.set_size(bytes.size());
  if (!writer.Write(response)) return CallCancelled();
  for (std::size_t sent = 0; sent < bytes.size(); sent += kPeerChunkBytesMax) {
    response.set_chunk(bytes.data() + sent, std::min(kPeerChunkBytesMax, bytes.size() - sent));
    if (!writer.Write(response)) return CallCancelled();
  }
  return absl::OkStatus();
}

absl::Status PeerServer::Service::Seed(const grpc::ServerContext& context,
                                       const cluster::v1::SeedRequest& request,
                                       grpc::ServerWriter<cluster::v1::SeedResponse>& writer) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const SharedLimit::Share call, Admit(context, kSeedTimeoutMax));
  SOFTLOOKUP_RETURN_IF_ERROR(Check(request.caller()));
  const std::optional<SharedLimit::Share> seed = seeds_.Take(1);
  if (!seed.has_value()) {
    return absl::ResourceExhaustedError("This replica makes a copy for another call");
  }
  const SeedCopy copy(scratch_directory_);
  SOFTLOOKUP_RETURN_IF_ERROR(requests_.CopyRecordsTo(copy.directory()));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::vector<std::string> names, copy.FileNames());
  absl::flat_hash_map<absl::string_view, const cluster::v1::KeptFile*> kept;
  for (const cluster::v1::KeptFile& file : request.kept()) kept[file.name()] = &file;
  for (const std::string& name : names) {
    const auto it = kept.find(name);
    SOFTLOOKUP_RETURN_IF_ERROR(
        SendFile(copy, name, it == kept.end() ? nullptr : it->second, writer));
  }
  cluster::v1::SeedResponse response;
  response.set_file_count(names.size());
  return writer.Write(response) ? absl::OkStatus() : CallCancelled();
}

absl::Status PeerServer::Service::SendFile(
    const SeedCopy& copy, const std::string& name, const cluster::v1::KeptFile* kept,
    grpc::ServerWriter<cluster::v1::SeedResponse>& writer) const {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::uint64_t size, copy.SizeOf(name));
  Sha256Stream sha256;
  std::uint64_t kept_size = 0;
  if (kept != nullptr && kept->size() <= size) {
    SOFTLOOKUP_RETURN_IF_ERROR(
        copy.ReadFile(name, 0, kept->size(), [&sha256](absl::string_view chunk) {
          sha256.Add(chunk);
          return absl::OkStatus();
        }));
    if (sha256.Digest() == kept->sha256()) {
      kept_size = kept->size();
    } else {
      sha256 = Sha256Stream();
    }
  }
  cluster::v1::SeedResponse response;
  const auto send = [&] { return writer.Write(response) ? absl::OkStatus() : CallCancelled(); };
  response.mutable_file()->set_name(name);
  response.mutable_file()->set_size(size);
  response.mutable_file()->set_kept_size(kept_size);
  SOFTLOOKUP_RETURN_IF_ERROR(send());
  SOFTLOOKUP_RETURN_IF_ERROR(copy.ReadFile(name, kept_size, size, [&](absl::string_view chunk) {
    sha256.Add(chunk);
    response.set_chunk(chunk.data(), chunk.size());
    return send();
  }));
  response.set_sha256(sha256.Digest());
  return send();
}

absl::StatusOr<SharedLimit::Share> PeerServer::Service::Admit(const grpc::ServerContext& context,
                                                              absl::Duration timeout_max) {
  if (absl::FromChrono(context.deadline()) > absl::Now() + timeout_max) {
    return absl::InvalidArgumentError(absl::StrCat("The call needs a deadline that is at most ",
                                                   absl::FormatDuration(timeout_max), " away"));
  }
  std::optional<SharedLimit::Share> call = calls_.Take(1);
  if (call.has_value()) return *std::move(call);
  return absl::ResourceExhaustedError(
      absl::StrCat("Other replicas have ", kCallsMax, " calls in progress"));
}

absl::Status PeerServer::Service::Check(const cluster::v1::Caller& caller) const {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckName("cluster", caller.cluster(), name_.cluster));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckName("group", caller.group(), name_.group));
  return CheckName("node", caller.to_node(), name_.node);
}

absl::StatusOr<SharedLimit::Share> PeerServer::Service::TakeEntryBytes(std::uint64_t size) {
  std::optional<SharedLimit::Share> bytes = entry_bytes_.Take(size);
  if (bytes.has_value()) return *std::move(bytes);
  return absl::ResourceExhaustedError(absl::StrCat(
      "The entries of calls in progress would have more than ", kEntryBytesMax, " bytes"));
}

absl::StatusOr<Entry> PeerServer::Service::ReadHeader(
    const cluster::v1::StageHeader& header) const {
  SOFTLOOKUP_RETURN_IF_ERROR(Check(header.caller()));
  if (!header.previous().empty()) {
    SOFTLOOKUP_RETURN_IF_ERROR(CheckDigest("previous", header.previous()));
  }
  SOFTLOOKUP_RETURN_IF_ERROR(CheckDigest("digest", header.digest()));
  if (header.size() > Entry::kBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("An entry cannot have ", header.size(), " bytes"));
  }
  Entry entry;
  entry.epoch = header.epoch();
  entry.sequence = header.sequence();
  entry.previous = header.previous();
  entry.digest = header.digest();
  return entry;
}

PeerServer::PeerServer(std::unique_ptr<Service> service) : service_(std::move(service)) {}

absl::StatusOr<std::unique_ptr<PeerServer>> PeerServer::Start(PeerServerOptions options,
                                                              PeerRequests& requests) {
  SOFTLOOKUP_RETURN_IF_ERROR(PrepareSeedDirectory(options.scratch_directory));
  std::unique_ptr<PeerServer> started(new PeerServer(std::make_unique<Service>(
      std::move(options.name), std::move(options.scratch_directory), requests)));
  grpc::ServerBuilder builder;
  builder.RegisterService(started->service_.get());
  options.add_port(builder);
  // As often as clients ask, with some tolerance. gRPC's default ends connections that are asked
  // more often than every 5 minutes.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             static_cast<int>(absl::ToInt64Milliseconds(kPeerKeepalive / 2)));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                             static_cast<int>(absl::ToInt64Milliseconds(kPeerKeepalive)));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             static_cast<int>(absl::ToInt64Milliseconds(kPeerKeepaliveTimeout)));
  builder.SetMaxReceiveMessageSize(std::max(kPeerMessageBytesMax, options.message_bytes_max));
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 2);
  builder.SetResourceQuota(grpc::ResourceQuota("softlookup peers")
                               .Resize(kTransportBytesMax + options.transport_bytes_max)
                               .SetMaxThreads(kPeerThreadsMax));
  started->server_ = builder.BuildAndStart();
  if (started->server_ == nullptr) return absl::UnavailableError("gRPC does not start");
  return started;
}

PeerServer::~PeerServer() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

}  // namespace softlookup::server
