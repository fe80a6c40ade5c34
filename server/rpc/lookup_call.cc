#include "server/rpc/lookup_call.h"

#include <optional>
#include <string>
#include <utility>

#include "core/base/cancellation.h"
#include "core/base/status_macros.h"
#include "server/rpc/admission.h"
#include "server/rpc/codec.h"
#include "server/rpc/lookup_wait.h"
#include "server/rpc/revision_wait.h"
#include "server/rpc/status.h"
#include "server/rpc/unary_call.h"
#include "softlookup/v1/lookup.pb.h"

namespace softlookup::server {
namespace {

class LookupCall final : public MessageCall<v1::LookupRequest, v1::LookupResponse> {
 public:
  LookupCall(std::unique_ptr<Call> call, Engine& engine)
      : MessageCall(std::move(call), RunOn::kNetworkThread),
        engine_(engine),
        cancel_(std::make_shared<CancelToken>(this->call().deadline())) {}

  ~LookupCall() override {
    if (wait_ != nullptr) wait_->End();
  }

  void OnCancel() override { cancel_->Cancel(); }

 private:
  void Run() override;
  absl::Status Prepare();

  Engine& engine_;
  const std::shared_ptr<CancelToken> cancel_;
  DecodedLookup decoded_;
  LookupReport report_;
  std::shared_ptr<LookupWait> wait_;  // Null if the lookup may not wait.
  RevisionWait revision_wait_;
};

absl::Status LookupCall::Prepare() {
  const std::int64_t queries = QueriesOf(request_, engine_.limits());
  SOFTLOOKUP_RETURN_IF_ERROR(call().gate().Enter(request_.store(), queries));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckRoom(engine_, request_.store(), request_));
  return DecodeLookup(request_, kNoStoreOfStream, decoded_);
}

void LookupCall::Run() {
  if (absl::Status status = Prepare(); !status.ok()) return Refuse(status);
  if (MayWait(engine_, request_)) {
    wait_ = std::make_shared<LookupWait>(call(), cancel_);
    call().streams().Add(wait_);
    revision_wait_.Start(call().RevisionWaitMax(request_.min_revision()), call().deadline(),
                         cancel_);
  }
  decoded_.request.report = &report_;
  decoded_.request.refuses_ranges =
      call().origin() == CallOrigin::kRouter && KnowsRanges(call().rpc().context());
  engine_.Lookup(std::move(decoded_.request), cancel_, [this](absl::StatusOr<LookupResult> result) {
    absl::Status status = result.status();
    if (status.ok()) {
      status = EncodeLookup(request_, *result, engine_.limits().message_bytes_max, response_);
    }
    AnswerAs(std::move(status), response_, [&](const absl::Status& final_status) {
      return call().reporter().AnswerLookup(final_status,
                                            {.request = request_,
                                             .store = request_.store(),
                                             .result = result.ok() ? &*result : nullptr,
                                             .report = report_});
    });
  });
}

class AttendCall final : public MessageCall<v1::AttendRequest, v1::AttendResponse> {
 public:
  AttendCall(std::unique_ptr<Call> call, Engine& engine)
      : MessageCall(std::move(call), RunOn::kNetworkThread),
        engine_(engine),
        cancel_(std::make_shared<CancelToken>(this->call().deadline())) {}

  void OnCancel() override { cancel_->Cancel(); }

 private:
  void Run() override;

  Engine& engine_;
  const std::shared_ptr<CancelToken> cancel_;
  DecodedAttend decoded_;
};

void AttendCall::Run() {
  absl::Status status = call().gate().TakeRows(QueriesOf(request_, engine_.limits()));
  if (status.ok()) status = DecodeAttend(request_, decoded_);
  if (!status.ok()) return Refuse(status);
  engine_.Attend(decoded_.request, cancel_, [this](absl::StatusOr<LookupResult> result) {
    absl::Status status = result.status();
    if (status.ok()) {
      status = EncodeAttend(request_, *result, engine_.limits().message_bytes_max, response_);
    }
    Answer(std::move(status), response_);
  });
}

}  // namespace

void StartLookup(std::unique_ptr<Call> call, Engine& engine) {
  (new LookupCall(std::move(call), engine))->Start();
}

void StartAttend(std::unique_ptr<Call> call, Engine& engine) {
  (new AttendCall(std::move(call), engine))->Start();
}

}  // namespace softlookup::server
