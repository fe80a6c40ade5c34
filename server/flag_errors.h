#ifndef SOFTLOOKUP_SERVER_FLAG_ERRORS_H_
#define SOFTLOOKUP_SERVER_FLAG_ERRORS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace softlookup::server {

// Describes on one line, for people, why `app` could not parse `arguments` and the file of its
// --config. Begins with the place of the error if that is in the file. Suggests a known flag whose
// name is near an unknown one. `arguments` are those that `app` has parsed, in any order.
//
// A place is "FILE, line N: ", or "FILE: " if several lines of the file could be at fault. There is
// none if a flag among the arguments is at fault.
std::string FlagErrorLine(const CLI::App& app, const CLI::ParseError& error,
                          const std::vector<std::string>& arguments);

// Returns `message`, which is about the value of a flag. Puts the place in front of it if the
// --config file sets that flag and no argument does.
std::string WithPlace(const CLI::App& app, const std::vector<std::string>& arguments,
                      absl::string_view message);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_FLAG_ERRORS_H_
