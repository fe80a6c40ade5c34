#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_TENANT_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_TENANT_H_

#include "absl/strings/string_view.h"

namespace softlookup {

// Returns the tenant of the store named `store`, as a view into `store`: the name up to its first
// '/', or the whole name if it has none.
inline absl::string_view TenantOf(absl::string_view store) {
  return store.substr(0, store.find('/'));
}

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_TENANT_H_
