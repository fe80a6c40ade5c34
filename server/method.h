#ifndef SOFTLOOKUP_SERVER_METHOD_H_
#define SOFTLOOKUP_SERVER_METHOD_H_

#include <array>
#include <cstddef>

#include "absl/strings/string_view.h"

namespace softlookup::server {

// The methods of the wire contract, then the operator's.
enum class Method {
  kCreateStore,
  kGetStore,
  kListStores,
  kUpdateStore,
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
};

// By method, as in the .proto files.
inline constexpr std::array<absl::string_view, 17> kMethodNames = {
    "CreateStore",  "GetStore",    "ListStores", "UpdateStore",  "DeleteStore",  "Append",
    "StreamAppend", "ReadRows",    "DeleteRows", "Lookup",       "StreamLookup", "Attend",
    "GetMemory",    "WatchMemory", "GetWriter",  "CreateBackup", "ListBackups"};

inline absl::string_view NameOf(Method method) {
  return kMethodNames[static_cast<std::size_t>(method)];
}

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_METHOD_H_
