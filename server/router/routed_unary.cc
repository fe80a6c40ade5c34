#include "server/router/routed_unary.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "server/observability/trace_context.h"
#include "server/router/lookup_route.h"
#include "server/router/named_call.h"
#include "server/router/primary_call.h"
#include "server/router/replica_call.h"
#include "server/router/routes.h"
#include "server/router/running_route.h"
#include "server/router/wire_fields.h"
#include "server/rpc/unary_call.h"

namespace softlookup::server {
namespace {

// A unary call whose request goes to a node as it is.
class RoutedUnary final : public UnaryCall {
 public:
  RoutedUnary(std::unique_ptr<Call> call, const RouterParts& parts)
      : UnaryCall(std::move(call), RunOn::kNetworkThread), parts_(parts) {}

  void OnCancel() override { running_.Cancel(); }

 private:
  absl::Status Receive(grpc::ByteBuffer& bytes) override {
    SOFTLOOKUP_RETURN_IF_ERROR(call().Hold(bytes, charge_));
    request_.Swap(&bytes);
    return absl::OkStatus();
  }
  void Run() override;
  // Keeps what the audit log tells of the request.
  void KeepNames();
  std::shared_ptr<Route> MakeRoute();
  absl::Status CheckOnlyGroup() const;
  // Notes what the answer to the request tells.
  void Note(grpc::ByteBuffer& response);

  const RouterParts& parts_;
  grpc::ByteBuffer request_;
  MessageCharge charge_;
  std::string store_;
  std::string new_name_;  // Of a store that is to be renamed.
  RunningRoute running_;
};

void RoutedUnary::Run() {
  const Method method = call().spec().method;
  if (RoutedToOf(method) == RoutedTo::kOnlyGroup) {
    if (const absl::Status status = CheckOnlyGroup(); !status.ok()) return Refuse(status);
  }
  store_ = StoreOf(method, request_);
  if (method == Method::kRenameStore) new_name_ = TextField(request_, {2});
  KeepNames();
  const std::shared_ptr<Route> route = MakeRoute();
  running_.Set(route);
  // This may be deleted at any time from now on.
  route->Start();
}

void RoutedUnary::KeepNames() {
  const Method method = call().spec().method;
  if (method == Method::kAddReplica || method == Method::kRemoveReplica) {
    return call().auditor().NoteNode(TextField(request_, {1}));
  }
  if (method != Method::kRestoreStore) return call().gate().KeepNames(store_, new_name_);
  const std::string backed_up = TextField(request_, {2});
  call().gate().KeepNames(backed_up, store_ == backed_up ? "" : store_);
}

std::shared_ptr<Route> RoutedUnary::MakeRoute() {
  const Method method = call().spec().method;
  RoutedRequest request{.queue = &call().rpc().queue(),
                        .method = std::string(call().spec().path),
                        .bytes = request_,
                        .deadline = call().deadline(),
                        .caller = CallerOf(call())};
  auto done = [this](absl::Status status, const grpc::ByteBuffer& response) {
    AnswerBytes(std::move(status), response);
  };
  if (method == Method::kLookup) {
    return LookupRoute::Make(parts_, std::move(request), store_, std::move(done));
  }
  if (RoutedToOf(method) == RoutedTo::kReplica) {
    return ReplicaCall::Make(parts_, std::move(request), store_, std::move(done), /*choice=*/{});
  }
  if (method == Method::kGetRanges) {
    if (std::string node = TextField(request_, {2}); !node.empty()) {
      return NamedCall::Make(parts_, std::move(request), store_, std::move(node), std::move(done));
    }
  }
  return PrimaryCall::Make(
      parts_, std::move(request), store_, RepeatOf(method, request_),
      [this](grpc::ByteBuffer& response) { Note(response); }, std::move(done));
}

void RoutedUnary::Note(grpc::ByteBuffer& response) {
  const Method method = call().spec().method;
  NoteAnswer(method, store_, new_name_, response, parts_.revisions);
  if (const std::optional<std::uint64_t> rows = ChangedRows(method, response)) {
    call().auditor().CountChange(*rows);
  }
  const bool has_replaced = method == Method::kRenameStore && HasField(response, 2);
  if (has_replaced) call().auditor().NoteReplacement();
}

absl::Status RoutedUnary::CheckOnlyGroup() const {
  const std::shared_ptr<const ClusterMap> map = parts_.watch.map();
  if (map->groups.size() <= 1) return absl::OkStatus();
  const std::string groups = absl::StrJoin(
      map->groups, ", ",
      [](std::string* text, const ClusterMap::Group& group) { absl::StrAppend(text, group.name); });
  return MakeError(reasons::kSeveralGroups,
                   absl::StrCat("The cluster has several groups (", groups,
                                "), so ask a server of the one that is meant"));
}

}  // namespace

RoutedCaller CallerOf(const Call& call) {
  RoutedCaller caller{.identity = call.identity(), .client = call.rpc().peer()};
  // gRPC ends the process if metadata are sent that no header may have.
  const grpc::ServerContext& context = call.rpc().context();
  if (TraceIdOf(context).empty()) return caller;
  const grpc::string_ref trace = context.client_metadata().find("traceparent")->second;
  constexpr std::size_t kHeaderBytesMax = 256;
  const auto is_shown = [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); };
  if (trace.size() <= kHeaderBytesMax && std::ranges::all_of(trace, is_shown)) {
    caller.traceparent.assign(trace.data(), trace.size());
  }
  return caller;
}

void StartRoutedUnary(std::unique_ptr<Call> call, const RouterParts& parts) {
  (new RoutedUnary(std::move(call), parts))->Start();
}

}  // namespace softlookup::server
