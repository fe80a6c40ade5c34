#include "softlookup/append_stream.h"

#include <utility>

#include "client/cpp/append_pipeline.h"
#include "client/cpp/matrix_field.h"
#include "client/cpp/status_macros.h"

namespace softlookup {

AppendStream::AppendStream(std::unique_ptr<client_internal::AppendPipeline> pipeline)
    : pipeline_(std::move(pipeline)) {}
AppendStream::AppendStream(AppendStream&&) noexcept = default;
AppendStream& AppendStream::operator=(AppendStream&&) noexcept = default;
AppendStream::~AppendStream() = default;

absl::Status AppendStream::Append(FloatMatrixView keys, FloatMatrixView values) {
  v1::AppendRequest request;
  CLIENT_RETURN_IF_ERROR(client_internal::SetMatrix("keys", keys, request.mutable_keys()));
  CLIENT_RETURN_IF_ERROR(client_internal::SetMatrix("values", values, request.mutable_values()));
  request.set_acknowledge(pipeline_->acknowledge());
  return Append(std::move(request));
}

absl::Status AppendStream::Append(v1::AppendRequest request) {
  return pipeline_->Append(std::move(request));
}

absl::StatusOr<AppendSummary> AppendStream::Finish() { return pipeline_->Finish(); }

void AppendStream::Cancel() { pipeline_->Cancel(); }

AppendSummary AppendStream::acknowledged() const { return pipeline_->acknowledged(); }

v1::Writer AppendStream::resumed_from() const { return pipeline_->resumed_from(); }

}  // namespace softlookup
