#include "server/flag_environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/cli/nearest_name.h"

namespace softlookup::server {
namespace {

constexpr absl::string_view kPrefix = "SOFTLOOKUP_";

// Variables, without the prefix, that are of no flag and are often set where a server starts: of
// the tool, the examples, compose and the tests.
constexpr std::array<absl::string_view, 9> kOfOthers = {
    "CONTAINER_MEMORY", "HELP",   "LONG_TESTS", "PYTHON", "SANITIZED_BIN",
    "SERVER",           "TLS_CA", "TOKEN_FILE", "VERSION"};

// Further variables of the tests begin with this, after the prefix.
constexpr absl::string_view kOfTests = "TEST_";

// The variable of `flag`, without the prefix.
std::string NameOfVariable(absl::string_view flag) {
  return absl::AsciiStrToUpper(absl::StrReplaceAll(flag, {{"-", "_"}}));
}

// The flags that have variables, without the dashes in front.
std::vector<std::string> FlagsOf(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty()) continue;
    const std::string& flag = option->get_lnames()[0];
    if (flag != "help" && flag != "version") flags.push_back(flag);
  }
  return flags;
}

// Whether Kubernetes sets the variable in every container, for a Service whose name begins with
// "softlookup". Such are SOFTLOOKUP_SERVICE_HOST and SOFTLOOKUP_PORT_7471_TCP. `name` has the
// prefix.
bool IsOfKubernetes(absl::string_view name, absl::string_view value) {
  if (absl::StrContains(name, "_SERVICE_HOST") || absl::StrContains(name, "_SERVICE_PORT")) {
    return true;
  }
  constexpr absl::string_view kPort = "_PORT";
  const std::size_t port = name.find(kPort);
  if (port == absl::string_view::npos) return false;
  absl::string_view rest = name.substr(port + kPort.size());
  if (rest.empty()) return absl::StrContains(value, "://");
  return absl::ConsumePrefix(&rest, "_") && !rest.empty() &&
         absl::ascii_isdigit(static_cast<unsigned char>(rest.front()));
}

}  // namespace

std::string VariableOf(absl::string_view flag) {
  return absl::StrCat(kPrefix, NameOfVariable(flag));
}

std::vector<std::string> EnvironmentArguments(const CLI::App& app) {
  std::vector<std::string> arguments;
  for (const std::string& flag : FlagsOf(app)) {
    const char* value = std::getenv(VariableOf(flag).c_str());
    if (value != nullptr && *value != '\0') {
      arguments.push_back(absl::StrCat("--", flag, "=", value));
    }
  }
  return arguments;
}

std::vector<std::string> UnknownVariables(const CLI::App& app) {
  std::vector<std::string> known(kOfOthers.begin(), kOfOthers.end());
  std::vector<std::string> of_flags;
  for (const std::string& flag : FlagsOf(app)) of_flags.push_back(NameOfVariable(flag));
  known.insert(known.end(), of_flags.begin(), of_flags.end());
  std::vector<std::string> unknown;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view variable = *entry;
    const std::size_t equals = variable.find('=');
    if (equals == absl::string_view::npos || equals + 1 == variable.size()) continue;
    absl::string_view name = variable.substr(0, equals);
    if (IsOfKubernetes(name, variable.substr(equals + 1))) continue;
    if (!absl::ConsumePrefix(&name, kPrefix) || absl::StartsWith(name, kOfTests)) continue;
    if (std::find(known.begin(), known.end(), name) == known.end()) unknown.emplace_back(name);
  }
  std::sort(unknown.begin(), unknown.end());
  for (std::string& name : unknown) {
    const std::string nearest = cli::NearestName(name, of_flags, /*edits_max=*/3);
    name = absl::StrCat("the variable ", kPrefix, name, " is of no flag, and has no effect",
                        nearest.empty() ? "" : "; did you mean ", nearest.empty() ? "" : kPrefix,
                        nearest, nearest.empty() ? "" : "?");
  }
  return unknown;
}

}  // namespace softlookup::server
