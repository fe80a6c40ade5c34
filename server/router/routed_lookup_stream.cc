#include "server/router/routed_lookup_stream.h"

#include <chrono>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "core/base/status_macros.h"
#include "server/base/method.h"
#include "server/router/lookup_route.h"
#include "server/router/routed_unary.h"
#include "server/router/wire_fields.h"
#include "server/rpc/lookup_stream.h"
#include "server/rpc/message_buffer.h"
#include "server/rpc/status.h"
#include "softlookup/v1/lookup.pb.h"

namespace softlookup::server {
namespace {

// Field numbers of LookupRequest.
constexpr int kStoreField = 1;
constexpr int kTagField = 9;

}  // namespace

void RoutedLookupStream::Start(std::unique_ptr<Call> call, const RouterParts& parts) {
  const std::shared_ptr<RoutedLookupStream> stream(new RoutedLookupStream(std::move(call), parts));
  stream->Begin();
}

void RoutedLookupStream::HandleRequest(std::uint64_t number) {
  const auto lookup = std::make_shared<Lookup>();
  lookup->number = number;
  lookup->begin = std::chrono::steady_clock::now();
  const absl::Status status = Prepare(*lookup);
  std::shared_ptr<Route> routed;
  if (status.ok()) {
    const std::string store = TextField(lookup->bytes, {kStoreField});
    routed = LookupRoute::Make(parts_,
                               {.queue = &call().rpc().queue(),
                                .method = std::string(SpecOf(Method::kLookup).path),
                                .bytes = lookup->bytes,
                                .deadline = call().deadline(),
                                .caller = CallerOf(call())},
                               store,
                               [this, self = shared_from_this(), lookup](
                                   const absl::Status& result, const grpc::ByteBuffer& response) {
                                 Answer(lookup, result, response);
                               });
  }
  bool is_broken = false;
  {
    absl::MutexLock lock(&mutex_);
    pipeline_.OnHandled();
    if (final_.ok() && FailsLookupStream(status)) final_ = status;
    is_broken = pipeline_.is_broken();
    if (routed != nullptr) running_.emplace(number, routed);
    ProceedLocked();  // The next message is read while this one is on its way.
  }
  if (routed == nullptr) return Answer(lookup, status, {});
  routed->Start();
  if (is_broken) routed->Cancel();
}

absl::Status RoutedLookupStream::Prepare(Lookup& lookup) {
  lookup.tag = NumberField(bytes(), {kTagField});
  SOFTLOOKUP_RETURN_IF_ERROR(call().gate().AdmitNext());
  SOFTLOOKUP_RETURN_IF_ERROR(call().Hold(bytes(), lookup.charge));
  lookup.bytes.Swap(&bytes());
  const std::string store = TextField(lookup.bytes, {kStoreField});
  if (store_.empty()) store_ = store;
  if (store.empty()) lookup.bytes = WithText(lookup.bytes, kStoreField, store_);
  return absl::OkStatus();
}

void RoutedLookupStream::Answer(const std::shared_ptr<Lookup>& lookup, const absl::Status& status,
                                grpc::ByteBuffer response) {
  if (!status.ok()) {
    v1::LookupResponse error;
    error.set_tag(lookup->tag);
    *error.mutable_error() = ToLookupError(status);
    response = BytesOf(error);
  }
  call().reporter().AnswerMessage(lookup->begin, status);
  absl::MutexLock lock(&mutex_);
  running_.erase(lookup->number);
  if (final_.ok() && FailsLookupStream(status)) final_ = status;
  pipeline_.Answer(lookup->number, response);
  ProceedLocked();
}

void RoutedLookupStream::OnCancel() {
  std::vector<std::shared_ptr<Route>> running;
  {
    absl::MutexLock lock(&mutex_);
    pipeline_.Break();
    for (const auto& [number, routed] : running_) running.push_back(routed);
  }
  for (const auto& routed : running) routed->Cancel();
  Proceed();
}

}  // namespace softlookup::server
