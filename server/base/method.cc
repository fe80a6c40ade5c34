#include "server/base/method.h"

#include <array>

#include "absl/container/flat_hash_map.h"

namespace softlookup::server {
namespace {

constexpr bool kAudited = true, kNotAudited = false;

// Indexed by Method.
constexpr std::array<MethodSpec, kMethodCount> kSpecs = {{
    {Method::kCreateStore, "/softlookup.v1.SoftLookup/CreateStore", "CreateStore", Access::kManage,
     kAudited},
    {Method::kGetStore, "/softlookup.v1.SoftLookup/GetStore", "GetStore", Access::kRead,
     kNotAudited},
    {Method::kListStores, "/softlookup.v1.SoftLookup/ListStores", "ListStores", Access::kRead,
     kNotAudited},
    {Method::kUpdateStore, "/softlookup.v1.SoftLookup/UpdateStore", "UpdateStore", Access::kManage,
     kAudited},
    {Method::kRenameStore, "/softlookup.v1.SoftLookup/RenameStore", "RenameStore", Access::kManage,
     kAudited},
    {Method::kDeleteStore, "/softlookup.v1.SoftLookup/DeleteStore", "DeleteStore", Access::kManage,
     kAudited},
    {Method::kAppend, "/softlookup.v1.SoftLookup/Append", "Append", Access::kWrite, kAudited},
    {Method::kStreamAppend, "/softlookup.v1.SoftLookup/StreamAppend", "StreamAppend",
     Access::kWrite, kAudited},
    {Method::kReadRows, "/softlookup.v1.SoftLookup/ReadRows", "ReadRows", Access::kRead,
     kNotAudited},
    {Method::kDeleteRows, "/softlookup.v1.SoftLookup/DeleteRows", "DeleteRows", Access::kWrite,
     kAudited},
    {Method::kLookup, "/softlookup.v1.SoftLookup/Lookup", "Lookup", Access::kRead, kNotAudited},
    {Method::kStreamLookup, "/softlookup.v1.SoftLookup/StreamLookup", "StreamLookup", Access::kRead,
     kNotAudited},
    {Method::kAttend, "/softlookup.v1.SoftLookup/Attend", "Attend", Access::kRead, kNotAudited},
    {Method::kGetMemory, "/softlookup.v1.SoftLookup/GetMemory", "GetMemory", Access::kRead,
     kNotAudited},
    {Method::kWatchMemory, "/softlookup.v1.SoftLookup/WatchMemory", "WatchMemory", Access::kRead,
     kNotAudited},
    {Method::kGetWriter, "/softlookup.v1.SoftLookup/GetWriter", "GetWriter", Access::kWrite,
     kNotAudited},
    {Method::kCreateBackup, "/softlookup.admin.v1.Admin/CreateBackup", "CreateBackup",
     Access::kAdmin, kAudited},
    {Method::kListBackups, "/softlookup.admin.v1.Admin/ListBackups", "ListBackups", Access::kAdmin,
     kAudited},
    {Method::kHealthCheck, "/grpc.health.v1.Health/Check", "HealthCheck", Access::kNone,
     kNotAudited},
    {Method::kHealthWatch, "/grpc.health.v1.Health/Watch", "HealthWatch", Access::kNone,
     kNotAudited},
    {Method::kReflection, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
     "Reflection", Access::kAdmin, kNotAudited},
}};

constexpr bool AreInOrder() {
  for (std::size_t i = 0; i < kSpecs.size(); ++i) {
    if (static_cast<std::size_t>(kSpecs[i].method) != i) return false;
  }
  return true;
}
static_assert(AreInOrder());

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
