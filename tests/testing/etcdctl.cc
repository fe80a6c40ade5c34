#include "tests/testing/etcdctl.h"

#include "absl/strings/str_cat.h"

namespace softlookup::testing {

CommandResult RunEtcdctl(absl::string_view endpoint, const std::vector<std::string>& arguments,
                         const std::string& input) {
  // gRPC's name of a socket has one colon, etcdctl's is a URL.
  std::vector<std::string> command = {
      "/usr/bin/env", "ETCDCTL_API=3",
      "etcdctl",      "--command-timeout=3s",
      "--endpoints",  absl::StrCat("unix://", endpoint.substr(endpoint.find(':') + 1))};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return RunCommand(command, input);
}

}  // namespace softlookup::testing
