#ifndef SOFTLOOKUP_SERVER_BASE_METHOD_H_
#define SOFTLOOKUP_SERVER_BASE_METHOD_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace softlookup::server {

// The methods of all services: SoftLookup, Admin, gRPC's own health and reflection, and those that
// routers call at nodes.
enum class Method : std::uint8_t {
  kCreateStore,
  kGetStore,
  kListStores,
  kUpdateStore,
  kRenameStore,
  kCompactStore,
  kDeleteStore,
  kAppend,
  kStreamAppend,
  kReadRows,
  kDeleteRows,
  kLookup,
  kStreamLookup,
  kAttend,
  kGetMemory,
  kWatchMemory,
  kGetWriter,
  kCreateBackup,
  kListBackups,
  kRestoreStore,
  kGetGroup,
  kAddReplica,
  kRemoveReplica,
  kMovePrimary,
  kSplitStore,
  kMoveRange,
  kGetRanges,
  kHealthCheck,
  kHealthWatch,
  kReflection,
  kBeginLookup,
  kAnswerPart,
  kAnswerFirstPart,
  kSumRows,
};
inline constexpr std::size_t kMethodCount = 34;

// The role that a caller needs to call a method. CallGate checks it. kNone: the caller is not even
// identified.
enum class Access : std::uint8_t { kNone, kRead, kWrite, kManage, kAdmin };

struct MethodSpec {
  Method method;
  absl::string_view path;  // `/package.Service/Method`, as on the wire.
  absl::string_view name;  // In metrics, the server log and the audit log.
  Access access;
  // Whether the method changes what the server keeps. If true, UnsentAnswers never refuses an
  // answer of the method, because the change is already made.
  bool makes_changes;
  // Whether each call leaves an audit line, even if it fails (see CallAuditor). True of all methods
  // that make changes, and of the whole Admin service.
  bool is_audited;
  // Whether only routers may call the method, at the port of nodes.
  bool is_for_routers = false;
  // Whether a call counts as a request of its caller and of the store's tenant. False of what is
  // asked after another call that counts.
  bool counts_as_request = true;
};

const MethodSpec& SpecOf(Method method);
inline absl::string_view NameOf(Method method) { return SpecOf(method).name; }

// Null if there is no such method.
const MethodSpec* FindMethod(absl::string_view path);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_BASE_METHOD_H_
