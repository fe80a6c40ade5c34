#include "server/base/method.h"

#include <array>

#include "absl/container/flat_hash_map.h"

namespace softlookup::server {
namespace {

constexpr bool kChanges = true, kReads = false;
constexpr bool kAudited = true, kNotAudited = false;
constexpr bool kForRouters = true;

// Indexed by Method.
constexpr std::array<MethodSpec, kMethodCount> kSpecs = {{
    {Method::kCreateStore, "/softlookup.v1.SoftLookup/CreateStore", "CreateStore", Access::kManage,
     kChanges, kAudited},
    {Method::kGetStore, "/softlookup.v1.SoftLookup/GetStore", "GetStore", Access::kRead, kReads,
     kNotAudited},
    {Method::kListStores, "/softlookup.v1.SoftLookup/ListStores", "ListStores", Access::kRead,
     kReads, kNotAudited},
    {Method::kUpdateStore, "/softlookup.v1.SoftLookup/UpdateStore", "UpdateStore", Access::kManage,
     kChanges, kAudited},
    {Method::kRenameStore, "/softlookup.v1.SoftLookup/RenameStore", "RenameStore", Access::kManage,
     kChanges, kAudited},
    {Method::kCompactStore, "/softlookup.v1.SoftLookup/CompactStore", "CompactStore",
     Access::kManage, kChanges, kAudited},
    {Method::kDeleteStore, "/softlookup.v1.SoftLookup/DeleteStore", "DeleteStore", Access::kManage,
     kChanges, kAudited},
    {Method::kAppend, "/softlookup.v1.SoftLookup/Append", "Append", Access::kWrite, kChanges,
     kAudited},
    {Method::kStreamAppend, "/softlookup.v1.SoftLookup/StreamAppend", "StreamAppend",
     Access::kWrite, kChanges, kAudited},
    {Method::kReadRows, "/softlookup.v1.SoftLookup/ReadRows", "ReadRows", Access::kRead, kReads,
     kNotAudited},
    {Method::kDeleteRows, "/softlookup.v1.SoftLookup/DeleteRows", "DeleteRows", Access::kWrite,
     kChanges, kAudited},
    {Method::kLookup, "/softlookup.v1.SoftLookup/Lookup", "Lookup", Access::kRead, kReads,
     kNotAudited},
    {Method::kStreamLookup, "/softlookup.v1.SoftLookup/StreamLookup", "StreamLookup", Access::kRead,
     kReads, kNotAudited},
    {Method::kAttend, "/softlookup.v1.SoftLookup/Attend", "Attend", Access::kRead, kReads,
     kNotAudited},
    {Method::kGetMemory, "/softlookup.v1.SoftLookup/GetMemory", "GetMemory", Access::kRead, kReads,
     kNotAudited},
    {Method::kWatchMemory, "/softlookup.v1.SoftLookup/WatchMemory", "WatchMemory", Access::kRead,
     kReads, kNotAudited},
    {Method::kGetWriter, "/softlookup.v1.SoftLookup/GetWriter", "GetWriter", Access::kWrite, kReads,
     kNotAudited},
    {Method::kCreateBackup, "/softlookup.admin.v1.Admin/CreateBackup", "CreateBackup",
     Access::kAdmin, kChanges, kAudited},
    {Method::kListBackups, "/softlookup.admin.v1.Admin/ListBackups", "ListBackups", Access::kAdmin,
     kReads, kAudited},
    {Method::kRestoreStore, "/softlookup.admin.v1.Admin/RestoreStore", "RestoreStore",
     Access::kAdmin, kChanges, kAudited},
    {Method::kGetGroup, "/softlookup.admin.v1.Admin/GetGroup", "GetGroup", Access::kAdmin, kReads,
     kAudited},
    {Method::kAddReplica, "/softlookup.admin.v1.Admin/AddReplica", "AddReplica", Access::kAdmin,
     kChanges, kAudited},
    {Method::kRemoveReplica, "/softlookup.admin.v1.Admin/RemoveReplica", "RemoveReplica",
     Access::kAdmin, kChanges, kAudited},
    {Method::kMovePrimary, "/softlookup.admin.v1.Admin/MovePrimary", "MovePrimary", Access::kAdmin,
     kChanges, kAudited},
    {Method::kSplitStore, "/softlookup.admin.v1.Admin/SplitStore", "SplitStore", Access::kAdmin,
     kChanges, kAudited},
    {Method::kMoveRange, "/softlookup.admin.v1.Admin/MoveRange", "MoveRange", Access::kAdmin,
     kChanges, kAudited},
    {Method::kGetRanges, "/softlookup.admin.v1.Admin/GetRanges", "GetRanges", Access::kAdmin,
     kReads, kAudited},
    {Method::kHealthCheck, "/grpc.health.v1.Health/Check", "HealthCheck", Access::kNone, kReads,
     kNotAudited},
    {Method::kHealthWatch, "/grpc.health.v1.Health/Watch", "HealthWatch", Access::kNone, kReads,
     kNotAudited},
    {Method::kReflection, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
     "Reflection", Access::kAdmin, kReads, kNotAudited},
    {Method::kBeginLookup, "/softlookup.cluster.v1.RangeService/BeginLookup", "BeginLookup",
     Access::kRead, kReads, kNotAudited, kForRouters},
    {Method::kAnswerPart, "/softlookup.cluster.v1.RangeService/AnswerPart", "AnswerPart",
     Access::kRead, kReads, kNotAudited, kForRouters, /*counts_as_request=*/false},
    {Method::kAnswerFirstPart, "/softlookup.cluster.v1.RangeService/AnswerFirstPart",
     "AnswerFirstPart", Access::kRead, kReads, kNotAudited, kForRouters,
     /*counts_as_request=*/false},  // It counts itself, once it has found the revision.
    {Method::kSumRows, "/softlookup.cluster.v1.RangeService/SumRows", "SumRows", Access::kRead,
     kReads, kNotAudited, kForRouters, /*counts_as_request=*/false},
}};

constexpr bool AreInOrder() {
  for (std::size_t i = 0; i < kSpecs.size(); ++i) {
    if (static_cast<std::size_t>(kSpecs[i].method) != i) return false;
  }
  return true;
}
static_assert(AreInOrder());

constexpr bool AreChangesAudited() {
  for (const MethodSpec& spec : kSpecs) {
    if (spec.makes_changes && !spec.is_audited) return false;
  }
  return true;
}
static_assert(AreChangesAudited());

}  // namespace

const MethodSpec& SpecOf(Method method) { return kSpecs[static_cast<std::size_t>(method)]; }

const MethodSpec* FindMethod(absl::string_view path) {
  static const auto& by_path = *[] {
    auto* specs = new absl::flat_hash_map<absl::string_view, const MethodSpec*>;
    for (const MethodSpec& spec : kSpecs) specs->emplace(spec.path, &spec);
    return specs;
  }();
  const auto found = by_path.find(path);
  return found == by_path.end() ? nullptr : found->second;
}

}  // namespace softlookup::server
