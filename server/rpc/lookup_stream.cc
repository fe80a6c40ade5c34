#include "server/rpc/lookup_stream.h"

#include <chrono>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "server/rpc/admission.h"
#include "server/rpc/message_buffer.h"
#include "server/rpc/status.h"

namespace softlookup::server {

bool FailsLookupStream(const absl::Status& status) {
  return ReasonOf(status) == reasons::kMalformedMessage.name || absl::IsPermissionDenied(status) ||
         absl::IsUnauthenticated(status);
}

void LookupStream::Start(std::unique_ptr<Call> call, Engine& engine) {
  const std::shared_ptr<LookupStream> stream(new LookupStream(std::move(call), engine));
  stream->Begin();
}

void LookupStream::HandleRequest(std::uint64_t number) {
  auto owned = std::make_unique<Lookup>();
  Lookup& lookup = *owned;
  lookup.number = number;
  lookup.begin = std::chrono::steady_clock::now();
  lookup.cancel = std::make_shared<CancelToken>(call().deadline());
  const absl::Status status = Prepare(lookup);
  bytes().Clear();
  {
    absl::MutexLock lock(&mutex_);
    pipeline_.OnHandled();
    if (final_.ok() && FailsLookupStream(status)) final_ = status;
    if (pipeline_.is_broken()) lookup.cancel->Cancel();
    if (!pipeline_.error().ok()) lookup.cancel->wait().End(pipeline_.error());
    cancels_.emplace(lookup.number, lookup.cancel);
    if (status.ok()) ProceedLocked();  // The next request is read while this lookup runs.
  }
  if (!status.ok()) return Answer(std::move(owned), status);
  if (MayWait(engine_, lookup.request)) {
    lookup.revision_wait.Start(call().RevisionWaitMax(lookup.request.min_revision()),
                               call().deadline(), lookup.cancel);
  }
  lookup.decoded.request.report = &lookup.report;
  engine_.Lookup(std::move(lookup.decoded.request), lookup.cancel,
                 [this, self = shared_from_this(), owned = std::move(owned)](auto result) mutable {
                   Answer(std::move(owned), std::move(result));
                 });
}

absl::Status LookupStream::Prepare(Lookup& lookup) {
  SOFTLOOKUP_RETURN_IF_ERROR(call().gate().AdmitNext());
  SOFTLOOKUP_RETURN_IF_ERROR(call().Receive(bytes(), lookup.request, lookup.charge));
  if (store_.empty()) store_ = lookup.request.store();
  lookup.store = lookup.request.store().empty() ? store_ : lookup.request.store();
  SOFTLOOKUP_RETURN_IF_ERROR(
      call().gate().Enter(lookup.store, QueriesOf(lookup.request, engine_.limits())));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckRoom(engine_, lookup.store, lookup.request));
  return DecodeLookup(lookup.request, lookup.store, lookup.decoded);
}

void LookupStream::Answer(std::unique_ptr<Lookup> lookup, absl::StatusOr<LookupResult> result) {
  v1::LookupResponse response;
  absl::Status status = result.status();
  if (status.ok()) {
    status = EncodeLookup(lookup->request, *result, engine_.limits().message_bytes_max, response);
  }
  if (!status.ok()) {
    response.Clear();
    response.set_tag(lookup->request.tag());
    *response.mutable_error() = ToLookupError(status);
  }
  call().reporter().AnswerLookupMessage(lookup->begin, status,
                                        {.request = lookup->request,
                                         .store = lookup->store,
                                         .result = result.ok() ? &*result : nullptr,
                                         .report = lookup->report});
  grpc::ByteBuffer response_bytes = BytesOf(response);
  const std::uint64_t number = lookup->number;
  // Frees the request now: nothing uses it any more, and the response may wait long to be written.
  lookup.reset();
  absl::MutexLock lock(&mutex_);
  cancels_.erase(number);
  pipeline_.Answer(number, response_bytes);
  ProceedLocked();
}

std::vector<std::shared_ptr<CancelToken>> LookupStream::Cancels() const {
  std::vector<std::shared_ptr<CancelToken>> cancels;
  for (const auto& [number, cancel] : cancels_) cancels.push_back(cancel);
  return cancels;
}

void LookupStream::OnCancel() {
  std::vector<std::shared_ptr<CancelToken>> cancels;
  {
    absl::MutexLock lock(&mutex_);
    pipeline_.Break();
    cancels = Cancels();
  }
  for (const auto& cancel : cancels) cancel->Cancel();
  Proceed();
}

void LookupStream::Cut(const absl::Status& status) {
  std::vector<std::shared_ptr<CancelToken>> cancels;
  {
    absl::MutexLock lock(&mutex_);
    pipeline_.EndWith(status);
    cancels = Cancels();
  }
  for (const auto& cancel : cancels) cancel->wait().End(status);
  Proceed();
}

}  // namespace softlookup::server
