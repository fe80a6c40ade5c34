#ifndef SOFTLOOKUP_SERVER_FLAG_ERRORS_H_
#define SOFTLOOKUP_SERVER_FLAG_ERRORS_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace softlookup::server {

// Returns one line, for people, that says why `app` could not parse `arguments` or its --config
// file. If the file is at fault, the line begins with the place of the error: "FILE, line N: ", or
// "FILE: " if no single line is known to be at fault. For an unknown flag, the line suggests a
// known flag with a similar name. `arguments` are those that `app` has parsed, in any order. The
// line has passed through cli::TerminalText(), because it quotes the arguments and the file.
std::string FlagErrorLine(const CLI::App& app, const CLI::ParseError& error,
                          const std::vector<std::string>& arguments);

// Returns an error, one line for people, if two lines of the --config file set the same flag, or if
// a value has a quote in front and none behind. The error names the lines, and has passed
// through cli::TerminalText(). Call this once `app` has parsed, or has failed to.
std::optional<std::string> ConfigMistake(const CLI::App& app);

// Returns a warning, a sentence for the operator, for each line of the --config file that has no
// effect because the environment sets its flag. The warnings have passed through
// cli::TerminalText(). Call this once `app` has parsed.
std::vector<std::string> OverriddenSettings(const CLI::App& app);

// Returns a line with `message`, an error about the value of a flag. If the --config file sets that
// flag and no argument does, the line begins with the place, as that of FlagErrorLine() does. The
// line has passed through cli::TerminalText().
std::string WithPlace(const CLI::App& app, const std::vector<std::string>& arguments,
                      absl::string_view message);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_FLAG_ERRORS_H_
