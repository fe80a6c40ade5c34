#include "tests/client/tool/run_tool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "client/tool/command.h"
#include "client/tool/parse_error.h"
#include "tests/testing/patient_options.h"

namespace softlookup::tool {

Outcome RunTool(const std::string& server, std::vector<std::string> arguments,
                std::optional<std::size_t> terminal_width) {
  std::ostringstream out, notes;
  Session session;
  session.out = &out;
  session.err = &notes;
  session.terminal_width = terminal_width;
  session.timeout_s = absl::ToDoubleSeconds(testing::kPatientDeadline);
  CLI::App app("", "softlookup");
  AddEverything(&app, &session);
  arguments.insert(arguments.begin(), {"--server", server});
  std::reverse(arguments.begin(), arguments.end());  // As CLI11 wants them.
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    if (!IsMistake(app, error)) {
      app.exit(error, out, notes);
      return {ExitCode::kOk, out.str(), "", notes.str()};
    }
    return {ExitCode::kUsage, "", ParseErrorLine(app, error), ""};
  }
  const absl::Status status = RunCommand(session);
  return {ExitCodeOf(status), out.str(),
          status.ok() ? "" : ErrorLine(status, session.server, session.credential_files),
          notes.str()};
}

nlohmann::json RunToolJson(const std::string& server, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"-o", "json"});
  const Outcome outcome = RunTool(server, std::move(arguments));
  EXPECT_EQ(outcome.error, "");
  return nlohmann::json::parse(outcome.out);
}

}  // namespace softlookup::tool
