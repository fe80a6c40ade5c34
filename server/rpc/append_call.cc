#include "server/rpc/append_call.h"

#include <string>
#include <utility>

#include "core/base/status_macros.h"
#include "server/rpc/admission.h"
#include "server/rpc/codec.h"
#include "server/rpc/store_limits.h"
#include "server/rpc/unary_call.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup::server {
namespace {

class AppendCall final : public MessageCall<v1::AppendRequest, v1::AppendResponse> {
 public:
  AppendCall(std::unique_ptr<Call> call, Engine& engine)
      : MessageCall(std::move(call), RunOn::kNetworkThread), engine_(engine) {}

 private:
  void Run() override {
    if (absl::Status status = Append(); !status.ok()) Refuse(status);
  }

  absl::Status Append();

  Engine& engine_;
};

absl::Status AppendCall::Append() {
  SOFTLOOKUP_RETURN_IF_ERROR(
      call().gate().Enter(request_.store(), RowsOf(request_, engine_.limits())));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreGrowth(engine_, call().gate().caller(),
                                              static_cast<std::int64_t>(request_.ByteSizeLong())));
  DecodedAppend decoded;
  SOFTLOOKUP_RETURN_IF_ERROR(DecodeAppend(request_, kNoStoreOfStream, decoded));
  decoded.request.deadline = call().deadline();
  engine_.Append(decoded.request, [this](absl::StatusOr<AppendResult> result) {
    if (result.ok()) {
      EncodeAppend(request_.sequence(), *result, response_);
      call().auditor().CountChange(result->appended_count);
    }
    Answer(result.status(), response_);
  });
  return absl::OkStatus();
}

}  // namespace

void StartAppend(std::unique_ptr<Call> call, Engine& engine) {
  (new AppendCall(std::move(call), engine))->Start();
}

}  // namespace softlookup::server
