#ifndef SOFTLOOKUP_TESTS_TESTING_ETCDCTL_H_
#define SOFTLOOKUP_TESTS_TESTING_ETCDCTL_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/testing/server_process.h"

namespace softlookup::testing {

// Runs etcdctl at the member of this endpoint of EtcdMembers, for at most `seconds`. `input` is
// what it reads.
CommandResult RunEtcdctl(absl::string_view endpoint, const std::vector<std::string>& arguments,
                         int seconds, const std::string& input = "");

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_ETCDCTL_H_
