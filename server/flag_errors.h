#ifndef SOFTLOOKUP_SERVER_FLAG_ERRORS_H_
#define SOFTLOOKUP_SERVER_FLAG_ERRORS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace softlookup::server {

// Describes on one line, for people, why `app` could not parse `arguments` and the file of its
// --config. Names the file and the line at fault, and a known flag that is near an unknown one.
// `arguments` are what was parsed, in any order.
std::string FlagErrorLine(const CLI::App& app, const CLI::ParseError& error,
                          const std::vector<std::string>& arguments);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_FLAG_ERRORS_H_
