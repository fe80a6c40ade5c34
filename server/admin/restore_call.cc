#include "server/admin/restore_call.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "server/admin/range_methods.h"
#include "server/base/single_task.h"
#include "server/rpc/call_stop.h"
#include "server/rpc/store_codec.h"
#include "server/rpc/store_limits.h"
#include "server/rpc/unary_call.h"
#include "softlookup/admin/v1/admin.pb.h"

namespace softlookup::server {
namespace {

// How long a caller should wait if a store is being restored (RESTORE_IN_PROGRESS).
constexpr absl::Duration kRestoreRetryDelay = absl::Seconds(5);

class RestoreStoreCall final
    : public MessageCall<admin::v1::RestoreStoreRequest, admin::v1::RestoreStoreResponse> {
 public:
  RestoreStoreCall(std::unique_ptr<Call> call, Engine& engine, const Backups& backups,
                   const GroupMember& member)
      : MessageCall(std::move(call), RunOn::kWorker),
        engine_(engine),
        backups_(backups),
        member_(member),
        stop_(std::make_shared<CallStop>(this->call())) {}

  ~RestoreStoreCall() override { stop_->Detach(); }

  void OnCancel() override { stop_->Cancel(); }

 private:
  void Run() override;
  absl::Status Prepare();
  absl::StatusOr<StoreInfo> Restore();
  // Restores the store. Logs and counts how that ended.
  absl::Status RestoreAndLog();

  // The name that the store gets.
  const std::string& name() const {
    return request_.name().empty() ? request_.store() : request_.name();
  }

  Engine& engine_;
  const Backups& backups_;
  const GroupMember& member_;
  const std::shared_ptr<CallStop> stop_;
};

// Checks that the ranges that a store keeps have nodes of the group alone.
absl::Status CheckRanges(const std::vector<StoreRange>& ranges, const GroupMember& member) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::vector<std::string> replicas, ReplicasOf(member));
  for (const StoreRange& range : ranges) {
    for (const std::string& node : range.nodes) {
      if (std::ranges::binary_search(replicas, node)) continue;
      return InvalidOption(
          "keep_ranges",
          absl::StrCat("in the backup, node ", node, " has the range from position ", range.begin,
                       ", but the group has the nodes ", absl::StrJoin(replicas, ", "),
                       "; restore the store without its ranges"));
    }
  }
  return absl::OkStatus();
}

absl::Status RestoreStoreCall::Prepare() {
  CallGate& gate = call().gate();
  SOFTLOOKUP_RETURN_IF_ERROR(
      name() == request_.store() ? gate.Enter(name()) : gate.EnterRename(request_.store(), name()));
  if (request_.keep_ranges()) SOFTLOOKUP_RETURN_IF_ERROR(CheckIsReplica(member_));
  SOFTLOOKUP_RETURN_IF_ERROR(backups_.Find(request_.backup()).status());
  if (call().limiters().restore.Claim()) return absl::OkStatus();
  return WithRetryAfter(
      MakeError(reasons::kRestoreInProgress, "The server is already restoring a store"),
      kRestoreRetryDelay);
}

void RestoreStoreCall::Run() {
  if (const absl::Status status = Prepare(); !status.ok()) return Refuse(status);
  call().streams().Add(stop_);
  stop_->Recheck();  // The rights may have been lost before Add().
  call().limiters().restore.Run([this]() -> SingleTask::Finish {
    absl::Status status = RestoreAndLog();
    return [this, status = std::move(status)] { Answer(status, response_); };
  });
}

absl::StatusOr<StoreInfo> RestoreStoreCall::Restore() {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const auto reservation, call().limiters().store_creations.Reserve(
                                                          engine_, call().gate().caller(), name()));
  const StoreRestore restore{
      .directory = backups_.DirectoryOf(request_.backup()),
      .store = request_.store(),
      .name = request_.name(),
      .keeps_ranges = request_.keep_ranges(),
      .check_directory = [this] { return backups_.Check(request_.backup(), stop_->cancel()); },
      .check_store = [this](const StoreInfo& info) -> absl::Status {
        if (request_.keep_ranges()) {
          SOFTLOOKUP_RETURN_IF_ERROR(CheckRanges(info.config.ranges, member_));
        }
        SOFTLOOKUP_RETURN_IF_ERROR(
            CheckStoreBytes(info.config, engine_.limits().message_bytes_max));
        return CheckStoreGrowth(engine_, call().gate().caller(),
                                static_cast<std::int64_t>(info.byte_size));
      }};
  return engine_.RestoreStore(restore, stop_->cancel());
}

absl::Status RestoreStoreCall::RestoreAndLog() {
  const absl::Time begin = absl::Now();
  const absl::StatusOr<StoreInfo> info = Restore();
  // The gate has cut names that are too long.
  const std::string store = call().gate().store(), new_name = call().gate().new_name();
  nlohmann::ordered_json fields = {{"store", new_name.empty() ? store : new_name},
                                   {"backup", request_.backup()},
                                   {"store_of_backup", store}};
  if (!info.ok()) {
    absl::Status status = stop_->CauseOf(info.status());
    // A wrong name is the caller's fault alone, so it is neither logged nor counted.
    if (!absl::IsInvalidArgument(status)) {
      call().CountRestore(/*is_ok=*/false);
      fields["error"] = std::string(status.message());
      call().LogStore(StoreEvent::kNotRestored, std::move(fields));
    }
    return status;
  }
  fields["rows"] = info->row_count;
  fields["bytes"] = info->byte_size;
  fields["seconds"] = absl::ToDoubleSeconds(absl::Now() - begin);
  call().CountRestore(/*is_ok=*/true);
  call().LogStore(StoreEvent::kRestored, std::move(fields));
  call().auditor().CountChange(info->row_count);
  *response_.mutable_store() = EncodeStore(*info);
  LeaveNumbersOut(*response_.mutable_store());
  return absl::OkStatus();
}

}  // namespace

void StartRestoreStore(std::unique_ptr<Call> call, Engine& engine, const Backups& backups,
                       const GroupMember& member) {
  (new RestoreStoreCall(std::move(call), engine, backups, member))->Start();
}

}  // namespace softlookup::server
