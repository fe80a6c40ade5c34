#ifndef SOFTLOOKUP_CORE_BASE_CLUSTER_NAME_H_
#define SOFTLOOKUP_CORE_BASE_CLUSTER_NAME_H_

#include "absl/strings/string_view.h"

namespace softlookup {

// What IsClusterName() takes, for messages.
inline constexpr char kClusterNameForm[] = "1 to 64 letters, digits, -, _ or .";

// Whether `text` may be the name of a cluster, a group or a node. Such names are in keys and values
// of etcd, between other text, and in the configurations of stores.
bool IsClusterName(absl::string_view text);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_CLUSTER_NAME_H_
