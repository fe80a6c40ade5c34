#include "softlookup/append_stream.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "client/lib/append_stream_impl.h"
#include "client/lib/grpc_status.h"
#include "client/lib/status_macros.h"

namespace softlookup {
namespace {

grpc::ClientContext* WithDeadline(grpc::ClientContext* context, absl::Duration deadline) {
  if (deadline != absl::InfiniteDuration()) {
    context->set_deadline(absl::ToChronoTime(absl::Now() + deadline));
  }
  return context;
}

// The same error with `note` after its message.
absl::Status Annotate(const absl::Status& status, const std::string& note) {
  absl::Status annotated(status.code(), absl::StrCat(status.message(), note));
  status.ForEachPayload([&](absl::string_view type_url, const absl::Cord& payload) {
    annotated.SetPayload(type_url, payload);
  });
  return annotated;
}

}  // namespace

AppendStream::Impl::Impl(std::shared_ptr<v1::SoftLookup::Stub> stub, std::string store,
                         const AppendStreamOptions& options)
    : options_(options),
      stub_(std::move(stub)),
      stream_(stub_->StreamAppend(WithDeadline(&context_, options.deadline))),
      store_(std::move(store)),
      reader_([this] { ReadAcknowledgements(); }) {}

AppendStream::Impl::~Impl() {
  if (result_.has_value()) return;
  context_.TryCancel();
  End();
}

void AppendStream::Impl::ReadAcknowledgements() {
  v1::AppendResponse response;
  while (stream_->Read(&response)) {
    absl::MutexLock lock(&mutex_);
    if (unacknowledged_.empty()) {  // An answer to no request: nothing it says can be relied on.
      context_.TryCancel();
      break;
    }
    unacknowledged_bytes_ -= unacknowledged_.front();
    unacknowledged_.pop_front();
    ++acknowledged_.acknowledged_requests;
    acknowledged_.acknowledged_rows += response.appended_count();
    acknowledged_.row_count = response.row_count();
    acknowledged_.revision = response.revision();
  }
  absl::MutexLock lock(&mutex_);
  reading_ended_ = true;
}

bool AppendStream::Impl::MayProceed(std::int64_t bytes) const {
  if (reading_ended_ || unacknowledged_.empty()) return true;
  return unacknowledged_.size() < static_cast<std::size_t>(options_.unacknowledged_requests_max) &&
         unacknowledged_bytes_ + bytes <= options_.unacknowledged_bytes_max;
}

void AppendStream::Impl::End() {
  reader_.join();
  absl::Status status = client_internal::FromGrpcStatus(stream_->Finish());
  absl::MutexLock lock(&mutex_);
  if (status.ok() && !(writes_done_ && unacknowledged_.empty())) {
    status = absl::InternalError("the server ended the stream before it answered every request");
  }
  if (!status.ok()) {
    status = Annotate(status,
                      absl::StrCat(" (rows acknowledged: ", acknowledged_.acknowledged_rows, ")"));
  }
  result_ = std::move(status);
}

absl::Status AppendStream::Impl::Append(v1::AppendRequest request) {
  if (result_.has_value()) {
    return result_->ok() ? absl::FailedPreconditionError("the stream is finished") : *result_;
  }
  if (!store_.empty()) request.set_store(std::exchange(store_, std::string()));
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

absl::StatusOr<AppendSummary> AppendStream::Impl::Finish() {
  if (!result_.has_value()) {
    stream_->WritesDone();
    writes_done_ = true;
    End();
  }
  if (!result_->ok()) return *result_;
  return acknowledged();
}

AppendSummary AppendStream::Impl::acknowledged() const {
  absl::MutexLock lock(&mutex_);
  return acknowledged_;
}

AppendStream::AppendStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AppendStream::AppendStream(AppendStream&&) noexcept = default;
AppendStream& AppendStream::operator=(AppendStream&&) noexcept = default;
AppendStream::~AppendStream() = default;

absl::Status AppendStream::Append(FloatMatrixView keys, FloatMatrixView values) {
  v1::AppendRequest request;
  CLIENT_RETURN_IF_ERROR(keys.ToProto(request.mutable_keys()));
  CLIENT_RETURN_IF_ERROR(values.ToProto(request.mutable_values()));
  request.set_acknowledge(impl_->acknowledge());
  return Append(std::move(request));
}

absl::Status AppendStream::Append(v1::AppendRequest request) {
  return impl_->Append(std::move(request));
}

absl::StatusOr<AppendSummary> AppendStream::Finish() { return impl_->Finish(); }

AppendSummary AppendStream::acknowledged() const { return impl_->acknowledged(); }

}  // namespace softlookup
