#include "server/rpc/pipelined_stream.h"

namespace softlookup::server {

void PipelinedStream::OnRead(bool ok) {
  std::uint64_t number = 0;
  {
    absl::MutexLock lock(&mutex_);
    // Requests after a failed one that ends the stream, or after the server has cut the stream, are
    // not handled.
    if (!ok || !pipeline_.error().ok()) {
      pipeline_.OnLastReadOver();
      return ProceedLocked();
    }
    number = pipeline_.OnRequest(bytes().Length());
  }
  HandleMessage([self = shared_from_this(), number] { self->HandleRequest(number); });
}

void PipelinedStream::OnWritten(bool ok) {
  absl::MutexLock lock(&mutex_);
  pipeline_.OnWritten();
  if (!ok) pipeline_.Break();
  ProceedLocked();
}

void PipelinedStream::Proceed() {
  absl::MutexLock lock(&mutex_);
  ProceedLocked();
}

void PipelinedStream::ProceedLocked() {
  const StreamPipeline::Step step = pipeline_.Next(MayRead());
  if (step.reads) StartRead();
  if (step.response != nullptr) StartWrite(*step.response);
  if (step.ends) call().rpc().Finish(ReportEnd());
}

grpc::Status PipelinedStream::ReportCutOr(const absl::Status& status) {
  const absl::Status& cut = pipeline_.error();
  return cut.ok() ? call().reporter().EndStream(status) : call().reporter().CutStream(cut);
}

void PipelinedStream::Recheck() {
  const absl::Status status = call().gate().Recheck();
  if (!status.ok()) Cut(status);
}

void PipelinedStream::Cut(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  pipeline_.EndWith(status);
  ProceedLocked();
}

}  // namespace softlookup::server
