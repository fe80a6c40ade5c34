#include "client/cpp/resuming_pipeline.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/append_text.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/retry.h"
#include "client/cpp/status_macros.h"
#include "client/cpp/tls_failure.h"
#include "softlookup/error_details.h"

namespace softlookup::client_internal {
namespace {

// Longest time after which a wait for several servers sees that the stream is cancelled.
constexpr absl::Duration kCancelWait = absl::Milliseconds(100);

// Whether the call of `context` ended with `status` for lack of a connection, and waiting for one
// may help.
bool IsUnreachable(const absl::Status& status, const grpc::ClientContext& context) {
  return absl::IsUnavailable(status) && ErrorReason(status).empty() &&
         !Pushback(context).has_value() && TlsFailureOf(status) == TlsFailure::kNone;
}

}  // namespace

ResumingPipeline::ResumingPipeline(Peer peer, const AppendStreamOptions& options,
                                   v1::Writer resumed_from)
    : AppendPipeline(options),
      peer_(std::move(peer)),
      resumed_from_(std::move(resumed_from)),
      queue_(resumed_from_.last_sequence()),
      worker_([this] { Run(); }) {}

ResumingPipeline::~ResumingPipeline() {
  Cancel();
  worker_.join();
}

void ResumingPipeline::Cancel() {
  absl::MutexLock lock(&mutex_);
  cancelled_ = true;
  if (call_ != nullptr) call_->TryCancel();
}

absl::Status ResumingPipeline::Append(v1::AppendRequest request) {
  if (!request.writer().empty() || request.sequence() != 0) {
    return absl::InvalidArgumentError(
        "the stream has a writer, so its requests may have neither writer nor sequence");
  }
  CLIENT_RETURN_IF_ERROR(CheckStore(request, peer_.store));
  // Set these on every request, because each can become the first of a new connection.
  request.set_store(peer_.store);
  request.set_writer(options().writer);
  const auto bytes = static_cast<std::int64_t>(request.ByteSizeLong());
  absl::MutexLock lock(&mutex_);
  const auto may_proceed = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return result_.has_value() || FitsWindow(options(), queue_.size(), queue_.bytes(), bytes);
  };
  mutex_.Await(absl::Condition(&may_proceed));
  if (result_.has_value() && !result_->ok()) return *result_;
  if (finishing_) return absl::FailedPreconditionError("the stream is finished");
  return queue_.Push(std::move(request));
}

absl::StatusOr<AppendSummary> ResumingPipeline::Finish() {
  absl::MutexLock lock(&mutex_);
  finishing_ = true;
  const auto is_over = [this]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return result_.has_value(); };
  mutex_.Await(absl::Condition(&is_over));
  if (!result_->ok()) return *result_;
  return queue_.acknowledged();
}

AppendSummary ResumingPipeline::acknowledged() const {
  absl::MutexLock lock(&mutex_);
  return queue_.acknowledged();
}

void ResumingPipeline::Run() {
  absl::Status failure;
  // Client::OpenAppendStream() has asked the server for the writer's last sequence.
  Step step = Step::kStream;
  while (AwaitWork()) {
    // If the connection broke while all was acknowledged, an outage begins with the next request.
    if (step != Step::kStream && outage_.begin == absl::InfiniteFuture()) BeginOutage();
    if (step == Step::kAskAgain) AwaitServer();
    const Server& server = peer_.servers->Connect(AskDeadline());
    grpc::ClientContext context;
    peer_.token.AddTo(&context);
    SetCall(&context);
    absl::Status status =
        step == Step::kStream ? Stream(server, &context) : Reposition(step, server, &context);
    SetCall(nullptr);
    peer_.servers->NoteFailure(server, status);
    if (step == Step::kAsk && IsUnreachable(status, context)) {
      ReportOutage(status);
      step = Step::kAskAgain;
      continue;
    }
    if (status.ok() && outage_.failures == 0) outage_ = {};  // The server was there all along.
    step = status.ok() && step != Step::kStream ? Step::kStream : Step::kAsk;
    if (!status.ok() && !AwaitRetry(status, context)) {
      failure = std::move(status);
      break;
    }
  }
  absl::MutexLock lock(&mutex_);
  if (cancelled_ && wrong_answer_.ok()) {
    // After Finish(), a stream whose requests are all acknowledged ends with OK even if it was
    // cancelled.
    const bool is_finished = finishing_ && queue_.empty();
    failure = is_finished ? absl::OkStatus() : absl::CancelledError("the stream was cancelled");
  }
  result_ = failure.ok() ? failure : WithProgress(failure, queue_.acknowledged());
}

bool ResumingPipeline::AwaitWork() {
  absl::MutexLock lock(&mutex_);
  // A connection that breaks while all requests are acknowledged begins no outage.
  if (queue_.empty()) outage_ = {};
  const auto may_proceed = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return cancelled_ || finishing_ || !queue_.empty();
  };
  mutex_.Await(absl::Condition(&may_proceed));
  return !cancelled_ && !queue_.empty();
}

absl::Status ResumingPipeline::Stream(const Server& server, grpc::ClientContext* context) {
  context->set_deadline(absl::ToChronoTime(peer_.deadline));
  {
    absl::MutexLock lock(&mutex_);
    reading_ended_ = false;
  }
  const auto stream = server.stub->StreamAppend(context);
  std::thread reader([&] { Receive(context, stream.get()); });
  // Only an outage bounds the call. gRPC cannot put off a deadline once an acknowledgement comes.
  bool outlasted = false;
  std::thread timer;
  if (OutageEnd() != absl::InfiniteFuture()) {
    timer = std::thread([&] { outlasted = EndWithOutage(context); });
  }
  Send(stream.get());
  reader.join();
  if (timer.joinable()) timer.join();
  absl::Status status = FromGrpcStatus(stream->Finish());
  absl::MutexLock lock(&mutex_);
  if (!wrong_answer_.ok()) return wrong_answer_;
  // Once all is acknowledged, it does not matter how the connection ended.
  if (finishing_ && queue_.empty()) return absl::OkStatus();
  if (status.ok()) return EndedEarly();
  if (outlasted) return Unanswered();
  if (absl::IsDeadlineExceeded(status) && outage_.failures > 0) return WithCause(status);
  last_failure_ = status;
  return status;
}

void ResumingPipeline::Send(ServerStream* stream) {
  const auto may_proceed = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return reading_ended_ || finishing_ || !queue_.all_sent();
  };
  for (;;) {
    ResendQueue::Request request;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&may_proceed));
      if (reading_ended_) return;
      request = queue_.NextToSend();
    }
    if (request == nullptr) {
      stream->WritesDone();
      return;
    }
    if (!stream->Write(*request)) return;
  }
}

void ResumingPipeline::Receive(grpc::ClientContext* context, ServerStream* stream) {
  v1::AppendResponse response;
  bool go_on = true;
  while (go_on && stream->Read(&response)) {
    {
      absl::MutexLock lock(&mutex_);
      wrong_answer_ = queue_.Acknowledge(response);
      go_on = wrong_answer_.ok();
    }
    if (go_on) {
      Report(acknowledged());
    } else {
      context->TryCancel();
    }
  }
  absl::MutexLock lock(&mutex_);
  reading_ended_ = true;
}

bool ResumingPipeline::EndWithOutage(grpc::ClientContext* context) {
  absl::MutexLock lock(&mutex_);
  const auto is_over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return reading_ended_ ||
           queue_.acknowledged().acknowledged_requests > outage_.acknowledged_requests;
  };
  if (mutex_.AwaitWithDeadline(absl::Condition(&is_over), OutageEnd())) return false;
  context->TryCancel();
  return true;
}

void ResumingPipeline::AwaitServer() {
  if (peer_.servers->size() == 1) return;  // The call itself waits.
  const absl::Time deadline = AskDeadline();
  const auto is_cancelled = [this] {
    absl::MutexLock lock(&mutex_);
    return cancelled_;
  };
  for (absl::Time now = absl::Now(); now < deadline && !is_cancelled(); now = absl::Now()) {
    if (peer_.servers->AwaitConnection(std::min(deadline, now + kCancelWait))) return;
  }
}

absl::Time ResumingPipeline::AskDeadline() const {
  return std::min({peer_.deadline, OutageEnd(), absl::Now() + peer_.call_deadline});
}

absl::Status ResumingPipeline::Reposition(Step step, const Server& server,
                                          grpc::ClientContext* context) {
  const absl::Time deadline = AskDeadline();
  context->set_deadline(absl::ToChronoTime(deadline));
  // A call that fails at once tells why there is no connection. But without a waiting call, a
  // channel tries to connect only every few seconds. Of several servers, AwaitServer() has found
  // one.
  context->set_wait_for_ready(step == Step::kAskAgain && peer_.servers->size() == 1);
  v1::GetWriterRequest request;
  request.set_store(peer_.store);
  request.set_writer(options().writer);
  v1::Writer answer;
  const absl::Status status = FromGrpcStatus(server.stub->GetWriter(context, request, &answer));
  if (absl::IsDeadlineExceeded(status)) {
    return deadline < peer_.deadline ? Unanswered() : WithCause(status);
  }
  const auto writer =
      KnownOrNewWriter(options().writer, status.ok() ? absl::StatusOr<v1::Writer>(answer) : status);
  if (!writer.ok()) {
    last_failure_ = writer.status();
    return last_failure_;
  }
  absl::MutexLock lock(&mutex_);
  return queue_.Rewind(writer->last_sequence());
}

void ResumingPipeline::BeginOutage() {
  outage_ = {.begin = absl::Now(), .acknowledged_requests = acknowledged().acknowledged_requests};
}

void ResumingPipeline::ReportOutage(const absl::Status& failure) {
  AppendSummary summary;
  {
    absl::MutexLock lock(&mutex_);
    queue_.SetOutage(failure);
    summary = queue_.acknowledged();
  }
  Report(summary);
}

absl::Status ResumingPipeline::Unanswered() const {
  return WithCause(absl::UnavailableError("the server cannot be reached or does not answer"));
}

absl::Status ResumingPipeline::WithCause(const absl::Status& error) const {
  if (last_failure_.ok()) return error;
  return AppendText(error, absl::StrCat("; before that: ", last_failure_.message()));
}

bool ResumingPipeline::AwaitRetry(const absl::Status& failure, const grpc::ClientContext& context) {
  AppendSummary summary = acknowledged();
  if (outage_.begin == absl::InfiniteFuture() ||
      outage_.acknowledged_requests < summary.acknowledged_requests) {
    BeginOutage();
  }
  RetryOptions retry = peer_.retry;
  retry.attempts_max = std::numeric_limits<int>::max();
  const auto delay = DelayBeforeRetry(retry, ++outage_.failures, failure, context);
  const absl::Time end = std::min(peer_.deadline, OutageEnd());
  if (!delay.has_value() || absl::Now() + *delay >= end) return false;
  {
    absl::MutexLock lock(&mutex_);
    if (cancelled_) return false;  // `failure` may come from Cancel(): then it is no outage.
    queue_.BeginReconnection(failure);
    summary = queue_.acknowledged();
  }
  Report(summary);
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&cancelled_), *delay);
  return !cancelled_;
}

absl::Time ResumingPipeline::OutageEnd() const { return outage_.begin + options().outage_max; }

void ResumingPipeline::SetCall(grpc::ClientContext* context) {
  absl::MutexLock lock(&mutex_);
  call_ = context;
  if (cancelled_ && call_ != nullptr) call_->TryCancel();
}

absl::StatusOr<v1::Writer> KnownOrNewWriter(const std::string& name,
                                            absl::StatusOr<v1::Writer> answer) {
  if (ErrorReason(answer.status()) != "WRITER_NOT_FOUND") return answer;
  v1::Writer writer;
  writer.set_writer(name);
  return writer;
}

}  // namespace softlookup::client_internal
