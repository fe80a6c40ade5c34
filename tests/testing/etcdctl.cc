#include "tests/testing/etcdctl.h"

#include "absl/strings/str_cat.h"

namespace softlookup::testing {

CommandResult RunEtcdctl(absl::string_view endpoint, const std::vector<std::string>& arguments,
                         int seconds, const std::string& input) {
  // gRPC's name of a socket has one colon, etcdctl's is a URL.
  const absl::string_view socket = endpoint.substr(endpoint.find(':') + 1);
  std::vector<std::string> command = {
      "/usr/bin/env", "ETCDCTL_API=3",
      "etcdctl",      absl::StrCat("--command-timeout=", seconds, "s"),
      "--endpoints",  absl::StrCat("unix://", socket)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return RunCommand(command, input);
}

}  // namespace softlookup::testing
