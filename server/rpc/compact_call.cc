#include "server/rpc/compact_call.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "server/base/single_task.h"
#include "server/rpc/call_stop.h"
#include "server/rpc/store_codec.h"
#include "server/rpc/unary_call.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup::server {
namespace {

// How long a caller should wait if a store is being compacted (COMPACTION_IN_PROGRESS).
constexpr absl::Duration kCompactionRetryDelay = absl::Seconds(5);

class CompactCall final : public MessageCall<v1::CompactStoreRequest, v1::CompactStoreResponse> {
 public:
  CompactCall(std::unique_ptr<Call> call, Engine& engine)
      : MessageCall(std::move(call), RunOn::kWorker),
        engine_(engine),
        stop_(std::make_shared<CallStop>(this->call())) {}

  ~CompactCall() override { stop_->Detach(); }

  void OnCancel() override { stop_->Cancel(); }

 private:
  void Run() override;
  absl::Status Prepare();
  absl::Status Compact();

  Engine& engine_;
  const std::shared_ptr<CallStop> stop_;
};

absl::Status CompactCall::Prepare() {
  SOFTLOOKUP_RETURN_IF_ERROR(call().gate().Enter(request_.name()));
  // A store that does not exist gets its own error, also while another store is compacted.
  SOFTLOOKUP_RETURN_IF_ERROR(engine_.GetStore(request_.name()).status());
  if (call().limiters().compaction.Claim()) return absl::OkStatus();
  return WithRetryAfter(
      MakeError(reasons::kCompactionInProgress, "The server is already compacting a store"),
      kCompactionRetryDelay);
}

void CompactCall::Run() {
  if (const absl::Status status = Prepare(); !status.ok()) return Refuse(status);
  call().streams().Add(stop_);
  stop_->Recheck();  // The caller may have lost its rights before Add().
  call().limiters().compaction.Run([this]() -> SingleTask::Finish {
    absl::Status status = Compact();
    return [this, status = std::move(status)] { Answer(status, response_); };
  });
}

absl::Status CompactCall::Compact() {
  std::uint64_t dropped_rows = 0;
  const CompactionRequest request{.store = request_.name(),
                                  .end_memories = request_.end_memories(),
                                  .dropped_rows = &dropped_rows};
  call().LogStore(StoreEvent::kCompactionBegun, {{"store", request.store}});
  const absl::StatusOr<CompactionResult> result = engine_.CompactStore(request, stop_->cancel());
  const absl::Status status = result.ok() ? absl::OkStatus() : stop_->CauseOf(result.status());
  call().LogStore(StoreEvent::kCompactionEnded,
                  CompactionFields(request.store, status, dropped_rows));
  if (result.ok() || dropped_rows > 0) call().auditor().CountChange(dropped_rows);
  SOFTLOOKUP_RETURN_IF_ERROR(status);
  EncodeCompaction(*result, response_);
  return absl::OkStatus();
}

}  // namespace

void StartCompactStore(std::unique_ptr<Call> call, Engine& engine) {
  (new CompactCall(std::move(call), engine))->Start();
}

}  // namespace softlookup::server
