#ifndef SOFTLOOKUP_CLIENT_TOOL_PARSE_ERROR_H_
#define SOFTLOOKUP_CLIENT_TOOL_PARSE_ERROR_H_

#include <CLI/CLI.hpp>
#include <string>

namespace softlookup::tool {

// Describes on one line, for people, why `app` could not parse the command line. Suggests a known
// word for an unknown one, and names the command's --help.
std::string ParseErrorLine(const CLI::App& app, const CLI::ParseError& error);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_PARSE_ERROR_H_
