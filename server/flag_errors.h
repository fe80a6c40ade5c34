#ifndef SOFTLOOKUP_SERVER_FLAG_ERRORS_H_
#define SOFTLOOKUP_SERVER_FLAG_ERRORS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace softlookup::server {

// Describes on one line, for people, why `app` could not parse `arguments` and the file of its
// --config. Names the file and the line at fault, and a known flag that is near an unknown one.
// `arguments` are what was parsed, in any order.
//
// A place is "FILE, line N: ", or "FILE: " if several lines might be meant. It is left out if a
// flag among the arguments is at fault.
std::string FlagErrorLine(const CLI::App& app, const CLI::ParseError& error,
                          const std::vector<std::string>& arguments);

// Returns a message about the value of a flag, with the place where the --config file sets it.
std::string WithPlace(const CLI::App& app, const std::vector<std::string>& arguments,
                      absl::string_view message);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_FLAG_ERRORS_H_
