#ifndef SOFTLOOKUP_TESTS_CLIENT_TOOL_RUN_TOOL_H_
#define SOFTLOOKUP_TESTS_CLIENT_TOOL_RUN_TOOL_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "client/tool/exit_code.h"

namespace softlookup::tool {

struct Outcome {
  ExitCode exit_code;
  std::string out;
  std::string error;  // Empty if all went well.
  std::string notes;  // For people, beside `out`.
};

// Runs the tool in this process, from its command line to its output. If `terminal_width` is set,
// the tool prints as on a terminal with that number of columns.
Outcome RunTool(const std::string& server, std::vector<std::string> arguments,
                std::optional<std::size_t> terminal_width = std::nullopt);

// The same for a run that succeeds and prints JSON.
nlohmann::json RunToolJson(const std::string& server, std::vector<std::string> arguments);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_TESTS_CLIENT_TOOL_RUN_TOOL_H_
