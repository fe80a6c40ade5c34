#include "softlookup/client.h"

#include <grpcpp/support/sync_stream.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "client/cpp/address.h"
#include "client/cpp/append_text.h"
#include "client/cpp/bearer_token.h"
#include "client/cpp/cancel_scope.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/health.h"
#include "client/cpp/matrix_field.h"
#include "client/cpp/one_connection_pipeline.h"
#include "client/cpp/query_weights.h"
#include "client/cpp/resuming_pipeline.h"
#include "client/cpp/retry.h"
#include "client/cpp/servers.h"
#include "client/cpp/status_macros.h"
#include "softlookup/admin/v1/admin.grpc.pb.h"
#include "softlookup/error_details.h"
#include "softlookup/v1/soft_lookup.grpc.pb.h"

namespace softlookup {
namespace {

using client_internal::BearerToken;
using client_internal::Repeat;
using client_internal::Server;
using client_internal::Servers;
using AdminStub = admin::v1::Admin::Stub;

absl::Status Validate(std::string_view address, const ClientOptions& options) {
  CLIENT_RETURN_IF_ERROR(client_internal::CheckServers(address));
  if (options.deadline <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("ClientOptions::deadline must be positive");
  }
  if (options.retry.attempts_max < 1) {
    return absl::InvalidArgumentError("RetryOptions::attempts_max must be at least 1");
  }
  if (options.retry.backoff_min < absl::ZeroDuration() ||
      options.retry.backoff_max < options.retry.backoff_min) {
    return absl::InvalidArgumentError("RetryOptions needs 0 <= backoff_min <= backoff_max");
  }
  if (options.message_bytes_max < 1) {
    return absl::InvalidArgumentError("ClientOptions::message_bytes_max must be at least 1");
  }
  if (options.keepalive_interval <= absl::ZeroDuration() ||
      options.keepalive_timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("ClientOptions::keepalive_* must be positive");
  }
  return ValidateCredentials(options.credentials);
}

absl::Status Validate(const AppendStreamOptions& options) {
  if (options.deadline <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("AppendStreamOptions::deadline must be positive");
  }
  if (options.outage_max <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("AppendStreamOptions::outage_max must be positive");
  }
  if (options.unacknowledged_requests_max < 1) {
    return absl::InvalidArgumentError(
        "AppendStreamOptions::unacknowledged_requests_max must be at least 1");
  }
  if (options.unacknowledged_bytes_max < 1) {
    return absl::InvalidArgumentError(
        "AppendStreamOptions::unacknowledged_bytes_max must be at least 1");
  }
  return absl::OkStatus();
}

// The least that AttentionOptions.max_error counts as.
constexpr double kExactness = 1e-5;

// Returns Internal if the lists in `response` do not have the sizes that `queries` queries need, or
// if a weight is not finite. Without the check of sizes, callers could index past the end of a
// list. They index `stats` and `weights` by query and head, and use one index for all lists of a
// QueryWeights.
template <typename Response>
absl::Status CheckAnswer(const Response& response, std::uint32_t queries,
                         const v1::AttentionOptions& options) {
  const auto stats = static_cast<std::uint32_t>(response.stats_size());
  bool fits = response.values().rows() == queries &&
              (queries == 0 ? stats == 0 : stats > 0 && stats % queries == 0);
  if (response.weights_size() > 0 || options.weights() == v1::WEIGHTS_MODE_TOP ||
      options.weights() == v1::WEIGHTS_MODE_ALL) {
    fits &= response.weights_size() == response.stats_size();
  }
  fits &=
      std::all_of(response.weights().begin(), response.weights().end(), client_internal::ListsFit);
  if (!fits) return absl::InternalError("the server's answer does not fit the queries");
  if (!std::all_of(response.weights().begin(), response.weights().end(),
                   client_internal::WeightsAreFinite)) {
    return absl::InternalError("the server's answer has a weight that is not finite");
  }
  return absl::OkStatus();
}

}  // namespace

class Client::Impl {
 public:
  Impl(std::string_view address, const ClientOptions& options)
      : options_(options),
        token_(options.credentials.token),
        servers_(std::make_shared<Servers>(client_internal::OpenChannels(address, options))) {}

  const std::shared_ptr<Servers>& servers() const { return servers_; }
  const BearerToken& token() const { return token_; }

  // Runs `attempt`, and retries it if `repeat` allows that. Adds the token to each attempt's
  // context. `name` is the call's. A deadline that passes here gets name and deadline in its
  // message, because gRPC's says neither.
  absl::Status Call(absl::string_view name, Repeat repeat, const CallOptions& call,
                    client_internal::Attempt attempt) const {
    const absl::Duration deadline = call.deadline.value_or(options_.deadline);
    if (deadline <= absl::ZeroDuration()) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": the deadline must be positive"));
    }
    absl::Status status =
        client_internal::CallWithRetries(*servers_, options_.retry, repeat, absl::Now() + deadline,
                                         [&](const Server& server, grpc::ClientContext* context) {
                                           token_.AddTo(context);
                                           return attempt(server, context);
                                         });
    if (!absl::IsDeadlineExceeded(status) || !ErrorReason(status).empty()) return status;
    return client_internal::AppendText(
        status, absl::StrCat(" (", name, " had ", absl::FormatDuration(deadline), ")"));
  }

  // Makes a call of `method`, a unary method of a stub, with its retries.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request, Repeat repeat,
                                const CallOptions& call) const {
    Response response;
    // A request is named after its method: GetStoreRequest.
    const absl::string_view name = absl::StripSuffix(Request::descriptor()->name(), "Request");
    CLIENT_RETURN_IF_ERROR(
        Call(name, repeat, call, [&](const Server& server, grpc::ClientContext* context) {
          Stub* const stub =
              std::get<Stub*>(std::tuple(server.stub.get(), server.admin_stub.get()));
          return (stub->*method)(context, request, &response);
        }));
    return response;
  }

  // Makes a call of `method`, a method of a server stream, which is never retried. Passes every
  // message to `take`. If `take` returns false, cancels the stream and returns OK. InfiniteDuration
  // sets no deadline.
  template <typename Request, typename Message>
  absl::Status ReadStream(std::unique_ptr<grpc::ClientReader<Message>> (
                              v1::SoftLookup::Stub::*method)(grpc::ClientContext*, const Request&),
                          const Request& request, absl::Duration deadline, Canceller* canceller,
                          const std::function<bool(const Message&)>& take) const {
    const absl::Time end = absl::Now() + deadline;
    grpc::ClientContext context;
    token_.AddTo(&context);
    if (deadline != absl::InfiniteDuration()) context.set_deadline(absl::ToChronoTime(end));
    const client_internal::CancelScope scope(canceller, context);
    const Server& server = servers_->Connect(end);
    const auto stream = (server.stub.get()->*method)(&context, request);
    Message message;
    bool go_on = true;
    while (go_on && stream->Read(&message)) go_on = take(message);
    if (!go_on) context.TryCancel();
    absl::Status status = client_internal::FromGrpcStatus(stream->Finish());
    if (!go_on) return absl::OkStatus();
    servers_->NoteFailure(server, status);
    return status;
  }

  // Returns what an append stream with a writer needs for its calls.
  client_internal::ResumingPipeline::Peer PeerOf(std::string_view store,
                                                 absl::Time deadline) const {
    return {.servers = servers_,
            .token = token_,
            .store = std::string(store),
            .retry = options_.retry,
            .call_deadline = options_.deadline,
            .deadline = deadline};
  }

 private:
  const ClientOptions options_;
  const BearerToken token_;
  const std::shared_ptr<Servers> servers_;
};

using Stub = v1::SoftLookup::Stub;

absl::StatusOr<Client> Client::Connect(std::string_view address, const ClientOptions& options) {
  CLIENT_RETURN_IF_ERROR(Validate(address, options));
  return Client(std::make_unique<Impl>(address, options));
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

absl::StatusOr<v1::Store> Client::CreateStore(const v1::Store& store, const CallOptions& call) {
  v1::CreateStoreRequest request;
  *request.mutable_store() = store;
  return impl_->Call(&Stub::CreateStore, request, Repeat::kUnsafe, call);
}

absl::StatusOr<v1::Store> Client::GetStore(std::string_view name, const CallOptions& call) {
  v1::GetStoreRequest request;
  request.set_name(std::string(name));
  return impl_->Call(&Stub::GetStore, request, Repeat::kSafe, call);
}

absl::StatusOr<std::vector<v1::Store>> Client::ListStores(std::string_view prefix,
                                                          const CallOptions& call) {
  std::vector<v1::Store> stores;
  v1::ListStoresRequest request;
  request.set_prefix(std::string(prefix));
  do {
    CLIENT_ASSIGN_OR_RETURN(v1::ListStoresResponse page, ListStoresPage(request, call));
    std::move(page.mutable_stores()->begin(), page.mutable_stores()->end(),
              std::back_inserter(stores));
    if (!page.next_page_token().empty() && page.next_page_token() == request.page_token()) {
      return absl::InternalError("the server sent the token of a page with that same page");
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return stores;
}

absl::StatusOr<v1::ListStoresResponse> Client::ListStoresPage(const v1::ListStoresRequest& request,
                                                              const CallOptions& call) {
  return impl_->Call(&Stub::ListStores, request, Repeat::kSafe, call);
}

absl::StatusOr<v1::Store> Client::UpdateStore(const v1::Store& store,
                                              const std::vector<std::string>& update_mask,
                                              const CallOptions& call) {
  v1::UpdateStoreRequest request;
  *request.mutable_store() = store;
  request.mutable_update_mask()->mutable_paths()->Assign(update_mask.begin(), update_mask.end());
  return impl_->Call(&Stub::UpdateStore, request, Repeat::kUnsafe, call);
}

absl::StatusOr<v1::RenameStoreResponse> Client::RenameStore(std::string_view store,
                                                            std::string_view new_name,
                                                            const RenameStoreOptions& options,
                                                            const CallOptions& call) {
  v1::RenameStoreRequest request;
  request.set_store(std::string(store));
  request.set_new_name(std::string(new_name));
  request.set_replace(options.replace);
  return impl_->Call(&Stub::RenameStore, request, Repeat::kUnsafe, call);
}

absl::StatusOr<v1::CompactStoreResponse> Client::CompactStore(std::string_view name,
                                                              const CompactStoreOptions& options,
                                                              const CallOptions& call) {
  v1::CompactStoreRequest request;
  request.set_name(std::string(name));
  request.set_end_memories(options.end_memories);
  return impl_->Call(&Stub::CompactStore, request, Repeat::kUnsafe, call);
}

absl::Status Client::DeleteStore(std::string_view name, const CallOptions& call) {
  v1::DeleteStoreRequest request;
  request.set_name(std::string(name));
  return impl_->Call(&Stub::DeleteStore, request, Repeat::kUnsafe, call).status();
}

absl::StatusOr<v1::AppendResponse> Client::Append(std::string_view store, FloatMatrixView keys,
                                                  FloatMatrixView values, const CallOptions& call) {
  v1::AppendRequest request;
  request.set_store(std::string(store));
  CLIENT_RETURN_IF_ERROR(client_internal::SetMatrix("keys", keys, request.mutable_keys()));
  CLIENT_RETURN_IF_ERROR(client_internal::SetMatrix("values", values, request.mutable_values()));
  return Append(request, call);
}

absl::StatusOr<v1::AppendResponse> Client::Append(const v1::AppendRequest& request,
                                                  const CallOptions& call) {
  const bool exactly_once = !request.writer().empty() && request.sequence() > 0;
  return impl_->Call(&Stub::Append, request, exactly_once ? Repeat::kSafe : Repeat::kUnsafe, call);
}

absl::StatusOr<AppendStream> Client::OpenAppendStream(std::string_view store,
                                                      const AppendStreamOptions& options) {
  CLIENT_RETURN_IF_ERROR(Validate(options));
  if (options.writer.empty()) {
    return AppendStream(std::make_unique<client_internal::OneConnectionPipeline>(
        impl_->servers(), impl_->token(), std::string(store), options));
  }
  const absl::Time deadline = absl::Now() + options.deadline;
  CallOptions call;
  if (options.deadline < absl::InfiniteDuration()) call.deadline = options.deadline;
  CLIENT_ASSIGN_OR_RETURN(
      v1::Writer writer,
      client_internal::KnownOrNewWriter(options.writer, GetWriter(store, options.writer, call)));
  return AppendStream(std::make_unique<client_internal::ResumingPipeline>(
      impl_->PeerOf(store, deadline), options, std::move(writer)));
}

absl::StatusOr<v1::Writer> Client::GetWriter(std::string_view store, std::string_view writer,
                                             const CallOptions& call) {
  v1::GetWriterRequest request;
  request.set_store(std::string(store));
  request.set_writer(std::string(writer));
  return impl_->Call(&Stub::GetWriter, request, Repeat::kSafe, call);
}

absl::Status Client::ReadRows(std::string_view store, const v1::RowFilter& filter,
                              const std::function<bool(const v1::ReadRowsResponse&)>& page,
                              const ReadRowsOptions& options) {
  if (options.deadline <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("ReadRowsOptions::deadline must be positive");
  }
  v1::ReadRowsRequest request;
  request.set_store(std::string(store));
  *request.mutable_filter() = filter;
  request.set_page_rows(options.page_rows);
  if (!options.read_mask.empty()) {
    request.mutable_read_mask()->mutable_paths()->Assign(options.read_mask.begin(),
                                                         options.read_mask.end());
  }
  return impl_->ReadStream(&Stub::ReadRows, request, options.deadline, options.canceller, page);
}

absl::StatusOr<v1::DeleteRowsResponse> Client::DeleteRows(std::string_view store,
                                                          const v1::RowFilter& filter,
                                                          const CallOptions& call) {
  v1::DeleteRowsRequest request;
  request.set_store(std::string(store));
  *request.mutable_filter() = filter;
  return impl_->Call(&Stub::DeleteRows, request, Repeat::kUnsafe, call);
}

absl::StatusOr<LookupAnswer> Client::Lookup(std::string_view store, FloatMatrixView queries,
                                            const LookupOptions& options, const CallOptions& call) {
  v1::LookupRequest request;
  request.set_store(std::string(store));
  CLIENT_RETURN_IF_ERROR(
      options.queries_are_inputs
          ? client_internal::SetMatrix("inputs", queries, request.mutable_inputs())
          : client_internal::SetMatrix("queries", queries, request.mutable_queries()));
  *request.mutable_options() = options.attention;
  *request.mutable_filter() = options.filter;
  request.set_source(options.source);
  request.set_memory(options.memory);
  request.set_min_revision(options.min_revision);
  request.set_linearizable(options.linearizable);
  CLIENT_ASSIGN_OR_RETURN(v1::LookupResponse response,
                          impl_->Call(&Stub::Lookup, request, Repeat::kSafe, call));
  CLIENT_RETURN_IF_ERROR(CheckAnswer(response, queries.rows, options.attention));
  LookupAnswer answer;
  absl::StatusOr<FloatMatrix> values = FloatMatrix::FromProto(response.values());
  if (!values.ok()) return absl::InternalError("the server's answer has a malformed matrix");
  answer.values = *std::move(values);
  answer.stats.assign(std::make_move_iterator(response.mutable_stats()->begin()),
                      std::make_move_iterator(response.mutable_stats()->end()));
  answer.weights.assign(std::make_move_iterator(response.mutable_weights()->begin()),
                        std::make_move_iterator(response.mutable_weights()->end()));
  answer.revision = response.revision();
  answer.row_count = response.row_count();
  answer.log_sum_exp_error = std::max(options.attention.max_error(), kExactness);
  return answer;
}

absl::StatusOr<v1::AttendResponse> Client::Attend(const v1::AttendRequest& request,
                                                  const CallOptions& call) {
  CLIENT_ASSIGN_OR_RETURN(v1::AttendResponse response,
                          impl_->Call(&Stub::Attend, request, Repeat::kSafe, call));
  const v1::Matrix& queries = request.self() ? request.inputs() : request.queries();
  CLIENT_RETURN_IF_ERROR(CheckAnswer(response, queries.rows(), request.options()));
  return response;
}

absl::StatusOr<v1::Memory> Client::GetMemory(const v1::GetMemoryRequest& request,
                                             const CallOptions& call) {
  return impl_->Call(&Stub::GetMemory, request, Repeat::kSafe, call);
}

absl::Status Client::WatchMemory(std::string_view store, std::string_view name,
                                 const std::function<bool(const v1::Memory&)>& changed,
                                 const WatchMemoryOptions& options) {
  const std::int64_t interval_ms = absl::ToInt64Milliseconds(options.min_interval);
  if (options.deadline <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("WatchMemoryOptions::deadline must be positive");
  }
  if (options.min_interval < absl::ZeroDuration() ||
      interval_ms > std::numeric_limits<std::uint32_t>::max()) {
    return absl::InvalidArgumentError(
        "WatchMemoryOptions::min_interval must be in [0, 2^32) milliseconds");
  }
  v1::WatchMemoryRequest request;
  request.set_store(std::string(store));
  request.set_name(std::string(name));
  request.set_min_interval_ms(static_cast<std::uint32_t>(interval_ms));
  return impl_->ReadStream(&Stub::WatchMemory, request, options.deadline, options.canceller,
                           changed);
}

absl::StatusOr<admin::v1::Backup> Client::CreateBackup(std::string_view name,
                                                       const CallOptions& call) {
  admin::v1::CreateBackupRequest request;
  request.set_name(std::string(name));
  return impl_->Call(&AdminStub::CreateBackup, request, Repeat::kUnsafe, call);
}

absl::StatusOr<std::vector<admin::v1::Backup>> Client::ListBackups(const CallOptions& call) {
  CLIENT_ASSIGN_OR_RETURN(
      admin::v1::ListBackupsResponse response,
      impl_->Call(&AdminStub::ListBackups, admin::v1::ListBackupsRequest(), Repeat::kSafe, call));
  return std::vector<admin::v1::Backup>(
      std::make_move_iterator(response.mutable_backups()->begin()),
      std::make_move_iterator(response.mutable_backups()->end()));
}

absl::StatusOr<v1::Store> Client::RestoreStore(std::string_view backup, std::string_view store,
                                               std::string_view name, const CallOptions& call) {
  admin::v1::RestoreStoreRequest request;
  request.set_backup(std::string(backup));
  request.set_store(std::string(store));
  request.set_name(std::string(name));
  return RestoreStore(request, call);
}

absl::StatusOr<v1::Store> Client::RestoreStore(const admin::v1::RestoreStoreRequest& request,
                                               const CallOptions& call) {
  CLIENT_ASSIGN_OR_RETURN(admin::v1::RestoreStoreResponse response,
                          impl_->Call(&AdminStub::RestoreStore, request, Repeat::kUnsafe, call));
  return std::move(*response.mutable_store());
}

absl::StatusOr<admin::v1::Group> Client::GetGroup(const CallOptions& call) {
  return impl_->Call(&AdminStub::GetGroup, admin::v1::GetGroupRequest(), Repeat::kSafe, call);
}

absl::StatusOr<admin::v1::Group> Client::AddReplica(std::string_view node,
                                                    const CallOptions& call) {
  admin::v1::AddReplicaRequest request;
  request.set_node(std::string(node));
  return impl_->Call(&AdminStub::AddReplica, request, Repeat::kUnsafe, call);
}

absl::StatusOr<admin::v1::Group> Client::RemoveReplica(std::string_view node,
                                                       const CallOptions& call) {
  admin::v1::RemoveReplicaRequest request;
  request.set_node(std::string(node));
  return impl_->Call(&AdminStub::RemoveReplica, request, Repeat::kUnsafe, call);
}

absl::StatusOr<admin::v1::Group> Client::MovePrimary(const CallOptions& call) {
  return impl_->Call(&AdminStub::MovePrimary, admin::v1::MovePrimaryRequest(), Repeat::kUnsafe,
                     call);
}

absl::StatusOr<admin::v1::StoreRanges> Client::SplitStore(std::string_view store,
                                                          std::uint32_t range_count, bool dry_run,
                                                          const CallOptions& call) {
  admin::v1::SplitStoreRequest request;
  request.set_store(std::string(store));
  request.set_range_count(range_count);
  request.set_dry_run(dry_run);
  return impl_->Call(&AdminStub::SplitStore, request, Repeat::kUnsafe, call);
}

absl::StatusOr<admin::v1::StoreRanges> Client::MoveRange(std::string_view store,
                                                         std::uint64_t begin,
                                                         const std::vector<std::string>& nodes,
                                                         bool dry_run, const CallOptions& call) {
  admin::v1::MoveRangeRequest request;
  request.set_store(std::string(store));
  request.set_begin(begin);
  request.mutable_nodes()->Add(nodes.begin(), nodes.end());
  request.set_dry_run(dry_run);
  return impl_->Call(&AdminStub::MoveRange, request, Repeat::kUnsafe, call);
}

absl::StatusOr<admin::v1::StoreRanges> Client::GetRanges(std::string_view store,
                                                         std::string_view node,
                                                         const CallOptions& call) {
  admin::v1::GetRangesRequest request;
  request.set_store(std::string(store));
  request.set_node(std::string(node));
  return impl_->Call(&AdminStub::GetRanges, request, Repeat::kSafe, call);
}

absl::StatusOr<ServingStatus> Client::Health(std::string_view service, const CallOptions& call) {
  ServingStatus serving = ServingStatus::kUnknown;
  CLIENT_RETURN_IF_ERROR(impl_->Call(
      "Health", Repeat::kSafe, call, [&](const Server& server, grpc::ClientContext* context) {
        return client_internal::CheckHealth(server.channel, context, service, &serving);
      }));
  return serving;
}

}  // namespace softlookup
