#include "server/router/node_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "server/rpc/routed_metadata.h"
#include "server/rpc/status.h"

namespace softlookup::server {

void PrepareNodeCall(const RoutedRequest& request, grpc::ClientContext& context) {
  if (request.deadline != absl::InfiniteFuture()) {
    context.set_deadline(absl::ToChronoTime(request.deadline));
  }
  const RoutedCaller& caller = request.caller;
  if (!caller.identity.empty()) context.AddMetadata(kRoutedIdentityKey, caller.identity);
  context.AddMetadata(kRoutedClientKey, caller.client);
  if (request.knows_ranges) context.AddMetadata(kRoutedRangesKey, "1");
  if (!caller.traceparent.empty()) context.AddMetadata("traceparent", caller.traceparent);
}

bool IsFromNode(const grpc::Status& status) {
  // gRPC's own errors have no details.
  return status.ok() || !status.error_details().empty();
}

void NoteEnd(const grpc::Status& status, Node& node) {
  const bool is_dropped = status.error_code() == grpc::StatusCode::CANCELLED;
  node.OnEnd(IsFromNode(status) ? Node::End::kAnswered
             : is_dropped       ? Node::End::kDropped
                                : Node::End::kFailed);
  if (status.ok()) return;
  if (ReasonOf(FromGrpcStatus(status)) == reasons::kShuttingDown.name) node.NoteStopping();
}

std::shared_ptr<NodeCall> NodeCall::Start(std::shared_ptr<CallSet> calls,
                                          std::shared_ptr<Node> node, const RoutedRequest& request,
                                          const grpc::ByteBuffer& bytes,
                                          std::optional<absl::Duration> revision_wait, Done done) {
  std::shared_ptr<NodeCall> call(
      new NodeCall(std::move(calls), std::move(node), bytes, std::move(done)));
  PrepareNodeCall(request, call->context_);
  if (revision_wait.has_value()) {
    call->context_.AddMetadata(kRoutedRevisionWaitKey,
                               absl::StrCat(absl::ToInt64Milliseconds(*revision_wait)));
  }
  call->calls_->Add(call->context_);
  call->node_->OnStart();
  call->self_ = call;
  call->reader_ = call->node_->stub().PrepareUnaryCall(&call->context_, request.method,
                                                       call->bytes_, request.queue);
  call->reader_->StartCall();
  call->reader_->Finish(&call->response_, &call->status_, call->tag());
  return call;
}

void NodeCall::OnEvent(bool) {
  const std::shared_ptr<NodeCall> self = std::exchange(self_, nullptr);
  NoteEnd(status_, *node_);
  std::exchange(done_, nullptr)(status_, response_);
}

}  // namespace softlookup::server
