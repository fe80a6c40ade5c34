#include "client/cpp/one_connection_pipeline.h"

#include <utility>

#include "absl/time/clock.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/status_macros.h"

namespace softlookup::client_internal {
namespace {

grpc::ClientContext* Prepared(grpc::ClientContext* context, const BearerToken& token,
                              absl::Duration deadline) {
  token.AddTo(context);
  if (deadline != absl::InfiniteDuration()) {
    context->set_deadline(absl::ToChronoTime(absl::Now() + deadline));
  }
  return context;
}

}  // namespace

OneConnectionPipeline::OneConnectionPipeline(std::shared_ptr<Servers> servers,
                                             const BearerToken& token, std::string store,
                                             const AppendStreamOptions& options)
    : AppendPipeline(options),
      servers_(std::move(servers)),
      server_(servers_->Connect(absl::Now() + options.deadline)),
      stream_(server_.stub->StreamAppend(Prepared(&context_, token, options.deadline))),
      store_(std::move(store)),
      reader_([this] { ReadAcknowledgements(); }) {}

OneConnectionPipeline::~OneConnectionPipeline() {
  if (result_.has_value()) return;
  Cancel();
  End();
}

void OneConnectionPipeline::ReadAcknowledgements() {
  v1::AppendResponse response;
  while (stream_->Read(&response)) {
    if (!Acknowledge(response)) {  // The server is broken: no answer of it can be trusted.
      context_.TryCancel();
      break;
    }
    Report(acknowledged());
  }
  absl::MutexLock lock(&mutex_);
  reading_ended_ = true;
}

bool OneConnectionPipeline::Acknowledge(const v1::AppendResponse& response) {
  absl::MutexLock lock(&mutex_);
  if (unacknowledged_.empty()) return false;
  unacknowledged_bytes_ -= unacknowledged_.front();
  unacknowledged_.pop_front();
  ++acknowledged_.acknowledged_requests;
  acknowledged_.acknowledged_rows += response.appended_count();
  acknowledged_.row_count = response.row_count();
  acknowledged_.revision = response.revision();
  return true;
}

bool OneConnectionPipeline::MayProceed(std::int64_t bytes) const {
  return reading_ended_ ||
         FitsWindow(options(), unacknowledged_.size(), unacknowledged_bytes_, bytes);
}

void OneConnectionPipeline::End() {
  reader_.join();
  absl::Status status = FromGrpcStatus(stream_->Finish());
  servers_->NoteFailure(server_, status);
  absl::MutexLock lock(&mutex_);
  if (status.ok() && !(writes_done_ && unacknowledged_.empty())) status = EndedEarly();
  if (!status.ok()) status = WithProgress(status, acknowledged_);
  result_ = std::move(status);
}

absl::Status OneConnectionPipeline::Append(v1::AppendRequest request) {
  if (result_.has_value()) {
    return result_->ok() ? absl::FailedPreconditionError("the stream is finished") : *result_;
  }
  // The first request of a call names the store for all of them. A stream that was opened without a
  // store leaves that to its caller.
  if (!store_.empty()) {
    CLIENT_RETURN_IF_ERROR(CheckStore(request, store_));
    request.set_store(std::exchange(store_sent_, true) ? std::string() : store_);
  }
  const auto bytes = static_cast<std::int64_t>(request.ByteSizeLong());
  bool ended;
  {
    absl::MutexLock lock(&mutex_);
    const auto may_proceed = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return MayProceed(bytes);
    };
    mutex_.Await(absl::Condition(&may_proceed));
    ended = reading_ended_;
    unacknowledged_.push_back(bytes);
    unacknowledged_bytes_ += bytes;
  }
  if (ended || !stream_->Write(request)) {
    End();
    return *result_;
  }
  return absl::OkStatus();
}

absl::StatusOr<AppendSummary> OneConnectionPipeline::Finish() {
  if (!result_.has_value()) {
    stream_->WritesDone();
    writes_done_ = true;
    End();
  }
  if (!result_->ok()) return *result_;
  return acknowledged();
}

AppendSummary OneConnectionPipeline::acknowledged() const {
  absl::MutexLock lock(&mutex_);
  return acknowledged_;
}

}  // namespace softlookup::client_internal
