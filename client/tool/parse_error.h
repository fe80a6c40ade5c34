#ifndef SOFTLOOKUP_CLIENT_TOOL_PARSE_ERROR_H_
#define SOFTLOOKUP_CLIENT_TOOL_PARSE_ERROR_H_

#include <CLI/CLI.hpp>
#include <string>

namespace softlookup::tool {

// Says that `parent`, the tool or one of its commands, has no command `word`. Suggests a similar
// command, if there is one: "unknown command list; did you mean store list?".
std::string UnknownCommandText(const CLI::App& parent, const std::string& word);

// Whether `error`, which parsing a command line threw, says that the line is wrong. Otherwise the
// line asks for help or for the version, and app.exit(error) prints it. A line that asks for the
// help of a command which does not exist is wrong: CLI11 would print the help of its parent.
bool IsMistake(const CLI::App& app, const CLI::ParseError& error);

// Describes on one line, for people, why `app` could not parse the command line. For an unknown
// command or option, suggests a similar one, if there is one. Names the --help to read. The line
// has passed through cli::TerminalText(), because it quotes the command line.
std::string ParseErrorLine(const CLI::App& app, const CLI::ParseError& error);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_PARSE_ERROR_H_
