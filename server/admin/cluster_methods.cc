#include "server/admin/cluster_methods.h"

#include <grpcpp/alarm.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/cancellation.h"
#include "core/base/cluster_name.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "server/rpc/alarm.h"
#include "server/rpc/status.h"
#include "server/rpc/stream_registry.h"
#include "server/rpc/unary_call.h"
#include "softlookup/admin/v1/admin.pb.h"

namespace softlookup::server {
namespace {

// How long a caller should wait if etcd does not answer (CLUSTER_UNAVAILABLE).
constexpr absl::Duration kClusterRetryDelay = absl::Seconds(1);

// A replica reads etcd about once a second, so it sees a change a little later than it is made.
// After a change, the group is read this often, at this interval, until it shows the change.
constexpr int kReadsMax = 50;
constexpr absl::Duration kReadInterval = absl::Milliseconds(100);

// What a call does with the group.
struct GroupTask {
  using Done = absl::AnyInvocable<void(absl::Status)>;

  // Begins the change. Null: there is none.
  std::function<void(Replication&, Done)> change;
  // Whether a group is as it must be after the change.
  std::function<bool(const GroupStatus&)> shows_it = [](const GroupStatus&) { return true; };
};

admin::v1::Group EncodeGroup(const ReplicaName& name, const GroupStatus& status) {
  admin::v1::Group group;
  group.set_cluster(name.cluster);
  group.set_group(name.group);
  group.set_node(name.node);
  group.set_primary(status.primary);
  group.set_epoch(status.epoch);
  group.set_last_entry(status.last_entry);
  group.set_copies(status.copies);
  for (const GroupStatus::Node& node : status.replicas) {
    admin::v1::Replica& replica = *group.add_replicas();
    replica.set_node(node.name);
    replica.set_address(node.address);
    replica.set_applied_entry(node.applied_entry);
  }
  return group;
}

// Has Replication do what a call asks for, and answers the call: with the group, or before that,
// with why the call ends. May outlive the call. Thread-safe.
class GroupAnswer final : public DrainableStream, public std::enable_shared_from_this<GroupAnswer> {
 public:
  using Group = absl::StatusOr<admin::v1::Group>;

  // Answers `call` by `answer`, which is called once. `call` and `member` are not used after that.
  GroupAnswer(Call& call, const GroupMember& member, GroupTask task,
              absl::AnyInvocable<void(Group)> answer)
      : member_(member), task_(std::move(task)), call_(&call), answer_(std::move(answer)) {}

  // Begins the task, unless the call is answered. Call this once.
  void Start();
  // Answers the call, unless it is answered.
  void Give(Group group);
  void Drain() override { Give(ShuttingDown()); }
  void Recheck() override;

 private:
  // Reads the group, unless the call is answered.
  void Read();
  void OnRead(const absl::StatusOr<GroupStatus>& status);
  // Calls Read() after kReadInterval.
  void ReadLater();

  const GroupMember& member_;
  const GroupTask task_;
  int reads_left_ = kReadsMax;  // One read at a time is in progress, and changes this.

  // The server ends no call that is not answered. So while answer_ is not null and the mutex is
  // held, the call and what outlives it are there.
  absl::Mutex mutex_;
  Call* const call_;
  absl::AnyInvocable<void(Group)> answer_ ABSL_GUARDED_BY(mutex_);  // Null: it was called.
  std::optional<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);
};

void GroupAnswer::Start() {
  if (task_.change == nullptr) return Read();
  absl::MutexLock lock(&mutex_);
  if (answer_ == nullptr) return;
  task_.change(*member_.replication, [self = shared_from_this()](const absl::Status& changed) {
    if (!changed.ok()) return self->Give(ErrorOfGroup(changed, /*is_change=*/true));
    self->Read();
  });
}

void GroupAnswer::Give(Group group) {
  absl::AnyInvocable<void(Group)> answer;
  {
    absl::MutexLock lock(&mutex_);
    answer = std::exchange(answer_, nullptr);
  }
  if (answer != nullptr) answer(std::move(group));
}

void GroupAnswer::Recheck() {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    if (answer_ != nullptr) status = call_->gate().Recheck();
  }
  if (!status.ok()) Give(status);
}

void GroupAnswer::Read() {
  absl::MutexLock lock(&mutex_);
  if (answer_ == nullptr) return;
  member_.replication->GetGroup(
      [self = shared_from_this()](const absl::StatusOr<GroupStatus>& status) {
        self->OnRead(status);
      });
}

void GroupAnswer::OnRead(const absl::StatusOr<GroupStatus>& status) {
  if (!status.ok()) {
    return Give(ErrorOfGroup(status.status(), /*is_change=*/task_.change != nullptr));
  }
  --reads_left_;
  if (!task_.shows_it(*status) && reads_left_ > 0) return ReadLater();
  admin::v1::Group group;
  {
    absl::MutexLock lock(&mutex_);
    if (answer_ == nullptr) return;
    group = EncodeGroup(member_.name, *status);
  }
  Give(std::move(group));
}

void GroupAnswer::ReadLater() {
  absl::MutexLock lock(&mutex_);
  if (answer_ == nullptr) return;
  SetAlarm(alarm_.emplace(), absl::Now() + kReadInterval,
           [self = shared_from_this()](bool) { self->Read(); });
}

// A call that is answered with the group.
template <typename Request>
class GroupCall final : public MessageCall<Request, admin::v1::Group> {
 public:
  using TaskOf = GroupTask (*)(const Request&, const ReplicaName&);

  GroupCall(std::unique_ptr<Call> call, const GroupMember& member, TaskOf task_of)
      : MessageCall<Request, admin::v1::Group>(std::move(call), UnaryCall::RunOn::kNetworkThread),
        member_(member),
        task_of_(task_of),
        cancel_(std::make_shared<CancelToken>(this->call().deadline())) {}

  void OnCancel() override { cancel_->Cancel(); }

 private:
  void Run() override;
  absl::Status Check();

  const GroupMember& member_;
  const TaskOf task_of_;
  const std::shared_ptr<CancelToken> cancel_;
};

template <typename Request>
absl::Status GroupCall<Request>::Check() {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckIsReplica(member_));
  if constexpr (requires { this->request_.node(); }) {
    const std::string& node = this->request_.node();
    if (!IsClusterName(node)) {
      return MakeError(reasons::kInvalidName,
                       absl::StrCat("node: \"", node, "\" is not ", kClusterNameForm),
                       {{"field", "node"}});
    }
    this->call().auditor().NoteNode(node);
  }
  return absl::OkStatus();
}

template <typename Request>
void GroupCall<Request>::Run() {
  if (const absl::Status status = Check(); !status.ok()) return this->Refuse(status);
  const auto answer =
      std::make_shared<GroupAnswer>(this->call(), member_, task_of_(this->request_, member_.name),
                                    [this](GroupAnswer::Group group) {
                                      absl::Status status = group.status();
                                      if (status.ok()) this->response_ = *std::move(group);
                                      this->Answer(std::move(status), this->response_);
                                    });
  StreamRegistry& streams = this->call().streams();
  const std::shared_ptr<CancelToken> cancel = cancel_;
  // From here on, the call may be answered, and then this object deleted, on another thread.
  cancel->wait().OnEnd([answer](absl::Status status) { answer->Give(std::move(status)); });
  streams.Add(answer);
  answer->Recheck();  // The caller may have lost its rights before Add().
  answer->Start();
}

template <typename Request>
void StartGroupCall(std::unique_ptr<Call> call, const GroupMember& member,
                    typename GroupCall<Request>::TaskOf task_of) {
  (new GroupCall<Request>(std::move(call), member, task_of))->Start();
}

bool Has(const GroupStatus& status, const std::string& node) {
  return std::ranges::find(status.replicas, node, &GroupStatus::Node::name) !=
         status.replicas.end();
}

}  // namespace

absl::Status CheckIsReplica(const GroupMember& member) {
  if (member.replication != nullptr) return absl::OkStatus();
  return MakeError(reasons::kNoCluster,
                   "This server is no replica: it was not started with --cluster-etcd");
}

absl::Status ErrorOfGroup(const absl::Status& error, bool is_change) {
  if (!ReasonOf(error).empty()) return error;
  if (absl::IsFailedPrecondition(error)) {
    return MakeError(reasons::kGroupUnchanged,
                     absl::StrCat("The group was not changed: ", error.message()));
  }
  if (!absl::IsUnavailable(error)) return error;
  const absl::string_view what =
      is_change ? "The group may have been changed, or may be later: " : "The group is not known: ";
  return WithRetryAfter(
      MakeError(reasons::kClusterUnavailable, absl::StrCat(what, error.message())),
      kClusterRetryDelay);
}

void StartGetGroup(std::unique_ptr<Call> call, const GroupMember& member) {
  StartGroupCall<admin::v1::GetGroupRequest>(
      std::move(call), member,
      [](const admin::v1::GetGroupRequest&, const ReplicaName&) { return GroupTask(); });
}

void StartAddReplica(std::unique_ptr<Call> call, const GroupMember& member) {
  StartGroupCall<admin::v1::AddReplicaRequest>(
      std::move(call), member, [](const admin::v1::AddReplicaRequest& request, const ReplicaName&) {
        return GroupTask{
            .change = [node = request.node()](
                          Replication& replication,
                          GroupTask::Done done) { replication.AddReplica(node, std::move(done)); },
            .shows_it =
                [node = request.node()](const GroupStatus& status) { return Has(status, node); }};
      });
}

void StartRemoveReplica(std::unique_ptr<Call> call, const GroupMember& member) {
  StartGroupCall<admin::v1::RemoveReplicaRequest>(
      std::move(call), member,
      [](const admin::v1::RemoveReplicaRequest& request, const ReplicaName&) {
        return GroupTask{
            .change =
                [node = request.node()](Replication& replication, GroupTask::Done done) {
                  replication.RemoveReplica(node, std::move(done));
                },
            .shows_it =
                [node = request.node()](const GroupStatus& status) { return !Has(status, node); }};
      });
}

void StartMovePrimary(std::unique_ptr<Call> call, const GroupMember& member) {
  StartGroupCall<admin::v1::MovePrimaryRequest>(
      std::move(call), member, [](const admin::v1::MovePrimaryRequest&, const ReplicaName& name) {
        return GroupTask{
            .change = [](Replication& replication,
                         GroupTask::Done done) { replication.StepDown(std::move(done)); },
            .shows_it =
                [node = name.node](const GroupStatus& status) {
                  return !status.primary.empty() && status.primary != node;
                }};
      });
}

}  // namespace softlookup::server
