#include "server/admin/range_methods.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/unary_call.h"
#include "softlookup/admin/v1/admin.pb.h"
#include "softlookup/store_ranges.h"

namespace softlookup::server {
namespace {

// How long a call waits for the names of the replicas. They are asked of the thread that also syncs
// what is written, and not of etcd.
constexpr absl::Duration kReplicasWaitMax = absl::Seconds(5);

// Begins the work of a call about the ranges of `store`: checks that the server is a replica, and
// that the caller may make the call.
absl::Status Begin(Call& call, const GroupMember& member, const std::string& store) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckIsReplica(member));
  return call.gate().Enter(store);
}

// Checks that `nodes`, of a request, can be those of a range, and are replicas of the group. Beside
// a replica, they may have nodes among `present`, those that the range has: a node that was removed
// from the group stays among these until the range moves.
absl::Status CheckNodes(const std::vector<std::string>& nodes,
                        const std::vector<std::string>& replicas,
                        const std::vector<std::string>& present) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckRangeNodes("nodes", nodes));
  const auto is_replica = [&replicas](const std::string& node) {
    return std::ranges::binary_search(replicas, node);
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (is_replica(nodes[i])) continue;
    const bool is_kept = std::ranges::find(present, nodes[i]) != present.end();
    if (is_kept && std::ranges::any_of(nodes, is_replica)) continue;
    return InvalidOption(absl::StrCat("nodes[", i, "]"),
                         absl::StrCat("node ", nodes[i], " is no replica of the group, which has ",
                                      absl::StrJoin(replicas, ", ")));
  }
  return absl::OkStatus();
}

void EncodeRanges(const std::string& store, const RangesInfo& info,
                  admin::v1::StoreRanges& message) {
  message.set_store(store);
  message.set_revision(info.revision);
  message.set_row_count(info.row_count);
  for (const RangeInfo& range : info.ranges) {
    admin::v1::StoreRange& added = *message.add_ranges();
    added.set_begin(range.range.begin);
    for (const std::string& node : range.range.nodes) added.add_nodes(node);
    added.set_row_count(range.row_count);
    added.set_live_row_count(range.live_row_count);
    added.set_byte_size(range.byte_size);
  }
}

// Sets the ranges that `plan` makes of the store that `request` names, unless it asks for a plan
// alone.
template <typename Request>
absl::Status Apply(Engine& engine, const Request& request, Engine::RangesOf plan,
                   admin::v1::StoreRanges& response) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const RangesInfo info, request.dry_run()
                                                         ? engine.PlanRanges(request.store(), plan)
                                                         : engine.SetRanges(request.store(), plan));
  EncodeRanges(request.store(), info, response);
  return absl::OkStatus();
}

absl::Status SplitStore(Engine& engine, const GroupMember& member, Call& call,
                        const admin::v1::SplitStoreRequest& request,
                        admin::v1::StoreRanges& response) {
  SOFTLOOKUP_RETURN_IF_ERROR(Begin(call, member, request.store()));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::vector<std::string> replicas, ReplicasOf(member));
  return Apply(
      engine, request,
      [&](const StoreInfo& store) { return EqualRanges(store, request.range_count(), replicas); },
      response);
}

absl::Status MoveRange(Engine& engine, const GroupMember& member, Call& call,
                       const admin::v1::MoveRangeRequest& request,
                       admin::v1::StoreRanges& response) {
  SOFTLOOKUP_RETURN_IF_ERROR(Begin(call, member, request.store()));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::vector<std::string> replicas, ReplicasOf(member));
  const std::vector<std::string> nodes(request.nodes().begin(), request.nodes().end());
  return Apply(
      engine, request,
      [&](const StoreInfo& store) -> absl::StatusOr<std::vector<StoreRange>> {
        const std::vector<StoreRange>& ranges = store.config.ranges;
        const auto range = std::ranges::find(ranges, request.begin(), &StoreRange::begin);
        SOFTLOOKUP_RETURN_IF_ERROR(CheckNodes(
            nodes, replicas, range == ranges.end() ? std::vector<std::string>() : range->nodes));
        return WithNodes(store, request.begin(), nodes);
      },
      response);
}

absl::Status GetRanges(Engine& engine, const GroupMember& member, Call& call,
                       const admin::v1::GetRangesRequest& request,
                       admin::v1::StoreRanges& response) {
  SOFTLOOKUP_RETURN_IF_ERROR(Begin(call, member, request.store()));
  if (!request.node().empty() && request.node() != member.name.node) {
    return InvalidOption("node", absl::StrCat("this is node ", member.name.node,
                                              ", which answers for itself alone; ask a router, or "
                                              "the node that is meant"));
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(const RangesInfo info, engine.GetRanges(request.store()));
  EncodeRanges(request.store(), info, response);
  for (int i = 0; i < response.ranges_size(); ++i) {
    response.mutable_ranges(i)->set_resident_count(
        info.ranges[static_cast<std::size_t>(i)].resident_count);
  }
  response.set_node(member.name.node);
  return CheckAnswerBytes(response, engine.limits().message_bytes_max);
}

// Has a worker call `method` with the request, and answers with its response.
template <typename Request>
void StartRangeCall(std::unique_ptr<Call> call, Engine& engine, const GroupMember& member,
                    absl::Status (*method)(Engine&, const GroupMember&, Call&, const Request&,
                                           admin::v1::StoreRanges&)) {
  StartCall<Request, admin::v1::StoreRanges>(
      std::move(call), UnaryCall::RunOn::kWorker,
      [&engine, &member, method](Call& call, const Request& request,
                                 admin::v1::StoreRanges& response) {
        return method(engine, member, call, request, response);
      });
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReplicasOf(const GroupMember& member) {
  // Outlives this call if the answer comes later.
  struct Answer {
    absl::Mutex mutex;
    std::optional<absl::StatusOr<GroupStatus>> group ABSL_GUARDED_BY(mutex);
  };
  const auto answer = std::make_shared<Answer>();
  member.replication->GetGroup([answer](absl::StatusOr<GroupStatus> group) {
    absl::MutexLock lock(&answer->mutex);
    answer->group = std::move(group);
  });
  const auto is_there = [&answer]()
                            ABSL_NO_THREAD_SAFETY_ANALYSIS { return answer->group.has_value(); };
  absl::StatusOr<GroupStatus> group = absl::UnavailableError("the replica does not answer");
  {
    absl::MutexLock lock(&answer->mutex);
    if (answer->mutex.AwaitWithTimeout(absl::Condition(&is_there), kReplicasWaitMax)) {
      group = *std::move(answer->group);
    }
  }
  if (!group.ok()) return ErrorOfGroup(group.status(), /*is_change=*/false);
  std::vector<std::string> names;
  for (const GroupStatus::Node& node : group->replicas) names.push_back(node.name);
  std::ranges::sort(names);
  return names;
}

void StartSplitStore(std::unique_ptr<Call> call, Engine& engine, const GroupMember& member) {
  StartRangeCall(std::move(call), engine, member, &SplitStore);
}

void StartMoveRange(std::unique_ptr<Call> call, Engine& engine, const GroupMember& member) {
  StartRangeCall(std::move(call), engine, member, &MoveRange);
}

void StartGetRanges(std::unique_ptr<Call> call, Engine& engine, const GroupMember& member) {
  StartRangeCall(std::move(call), engine, member, &GetRanges);
}

}  // namespace softlookup::server
