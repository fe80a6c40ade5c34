#ifndef SOFTLOOKUP_CLIENT_TOOL_PARSE_ERROR_H_
#define SOFTLOOKUP_CLIENT_TOOL_PARSE_ERROR_H_

#include <CLI/CLI.hpp>
#include <string>

namespace softlookup::tool {

// One line for people: what is wrong with the command line that `app` would not parse, the word
// that was perhaps meant, and where help is.
std::string ParseErrorLine(const CLI::App& app, const CLI::ParseError& error);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_PARSE_ERROR_H_
