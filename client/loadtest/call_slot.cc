#include "client/loadtest/call_slot.h"

#include <grpcpp/support/slice.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/retry.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup::loadtest {

CallSlot::CallSlot(CallSetup* setup, CallOwner* owner, int index)
    : setup_(setup),
      owner_(owner),
      stub_(setup->connections->stub(index % setup->connections->size())),
      writer_(setup->writer_prefix.empty() ? "" : absl::StrCat(setup->writer_prefix, index)) {}

void CallSlot::Start(const PreparedRequest& request, Clock::time_point due) {
  request_ = &request;
  due_ = due;
  attempts_made_ = 0;
  deadline_ = absl::Now() + setup_->timeout;
  if (request.method == Method::kAppend && !writer_.empty()) AddWriter();
  if (setup_->evidence != nullptr) rows_seen_ = setup_->evidence->RowsSeen(request.store);
  setup_->recorder->Sent(due, Clock::now());
  Attempt();
}

void CallSlot::StartAfter(absl::Duration delay, const PreparedRequest& request) {
  grpc::Alarm& alarm = alarm_.emplace();
  HandOver();
  alarm.Set(absl::ToChronoTime(absl::Now() + delay), [this, &request](bool) {
    TakeBack();
    Start(request, Clock::now());
  });
}

// Sets `written_` to the bytes of the request, followed by those of the fields `writer` and
// `sequence`. Protobuf parses two encoded messages, one behind the other, as one message with the
// fields of both. The slot has one call at a time, so its writer's sequences arrive in order.
void CallSlot::AddWriter() {
  v1::AppendRequest writer;
  writer.set_writer(writer_);
  writer.set_sequence(++sequence_);
  std::vector<grpc::Slice> parts;
  request_->bytes.Dump(&parts);
  parts.emplace_back(writer.SerializeAsString());
  written_ = grpc::ByteBuffer(parts.data(), parts.size());
}

void CallSlot::Attempt() {
  // While `preparing_` is set, Cancel() waits. So Cancel() does not read `context_` while this
  // thread makes the context.
  preparing_ = true;
  if (setup_->stop) {
    preparing_ = false;
    setup_->recorder->Unfinished();
    owner_->Ended(this, grpc::Status::CANCELLED);
    return;
  }
  context_.emplace();
  setup_->connections->Authorize(&*context_);
  if (deadline_ < absl::InfiniteFuture()) context_->set_deadline(absl::ToChronoTime(deadline_));
  preparing_ = false;
  ++attempts_made_;
  answer_.Clear();
  const bool with_writer = request_->method == Method::kAppend && !writer_.empty();
  const grpc::ByteBuffer* const bytes = with_writer ? &written_ : &request_->bytes;
  const std::string& path = PathOf(request_->method);
  grpc::ClientContext* const context = &*context_;
  HandOver();
  stub_.UnaryCall(context, path, {}, bytes, &answer_, [this](grpc::Status status) {
    TakeBack();
    Answered(status);
  });
}

void CallSlot::Answered(const grpc::Status& status) {
  const Clock::time_point now = Clock::now();
  if (status.ok() || !Retry(status, now)) Finish(status, now);
}

bool CallSlot::Retry(const grpc::Status& status, Clock::time_point now) {
  if (attempts_made_ >= setup_->retry.attempts_max || setup_->stop) return false;
  const auto delay = client_internal::DelayBeforeRetry(
      setup_->retry, attempts_made_, client_internal::FromGrpcStatus(status), *context_);
  if (!delay.has_value() || absl::Now() + *delay >= deadline_) return false;
  setup_->recorder->Retried(due_);
  grpc::Alarm& alarm = alarm_.emplace();
  HandOver();
  alarm.Set(absl::ToChronoTime(absl::Now() + *delay), [this](bool) {
    TakeBack();
    Attempt();
  });
  return true;
}

void CallSlot::Finish(const grpc::Status& status, Clock::time_point now) {
  if (cancelled_) {
    setup_->recorder->Unfinished();
  } else {
    setup_->recorder->Finished(request_->method, status, OutcomeOf(status), due_, now);
  }
  if (status.ok() && setup_->evidence != nullptr) {
    if (request_->method == Method::kLookup) {
      setup_->evidence->Lookup(*request_, rows_seen_, answer_, now);
    } else {
      setup_->evidence->Appended(*request_, answer_);
    }
  }
  owner_->Ended(this, status);
}

void CallSlot::Cancel() {
  // `stop` is already set, and Attempt() reads it after it has set `preparing_`. So either
  // Attempt() sees `stop`, or this loop waits until the context is made. No context is made later.
  while (preparing_) continue;
  cancelled_ = true;
  if (context_.has_value()) context_->TryCancel();
}

}  // namespace softlookup::loadtest
