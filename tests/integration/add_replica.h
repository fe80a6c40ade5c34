#ifndef SOFTLOOKUP_TESTS_INTEGRATION_ADD_REPLICA_H_
#define SOFTLOOKUP_TESTS_INTEGRATION_ADD_REPLICA_H_

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "softlookup/client.h"
#include "tests/testing/passing_time.h"

namespace softlookup::testing {

// Makes `node` a replica of the group that `client` calls. Tries again: a group changes nothing
// while it has no primary, or while its new primary still reads what was made of it. On a busy
// machine a primary can lose its lease at any time, and then does not tell what it has made.
inline void AddReplicaPatiently(Client& client, const std::string& node) {
  absl::Status added;
  ASSERT_TRUE(AwaitThat([&] {
    added = client.AddReplica(node).status();
    if (added.ok()) return true;
    const absl::StatusOr<admin::v1::Group> group = client.GetGroup();
    return group.ok() && std::ranges::any_of(group->replicas(), [&](const auto& replica) {
             return replica.node() == node;
           });
  })) << added;
}

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_INTEGRATION_ADD_REPLICA_H_
