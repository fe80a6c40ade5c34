#ifndef SOFTLOOKUP_SERVER_FLAG_ENVIRONMENT_H_
#define SOFTLOOKUP_SERVER_FLAG_ENVIRONMENT_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace softlookup::server {

// The variable of a flag is SOFTLOOKUP_ and the flag's name in capitals with _ for -. An empty
// variable counts as none.

// Returns the variable of `flag`, which has no dashes in front.
std::string VariableOf(absl::string_view flag);

// Returns the flags of `app` that the environment sets, each as "--flag=value", in the order of
// --help. --help and --version have no variables.
std::vector<std::string> EnvironmentArguments(const CLI::App& app);

// Returns a warning, a sentence for the operator, for each SOFTLOOKUP_ variable that is of no flag
// of `app`, in the order of their names. If a flag's variable has a similar name, the warning
// suggests it. Leaves out variables that other programs of softlookup or Kubernetes use. No warning
// has a variable's value.
std::vector<std::string> UnknownVariables(const CLI::App& app);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_FLAG_ENVIRONMENT_H_
