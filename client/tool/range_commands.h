#ifndef SOFTLOOKUP_CLIENT_TOOL_RANGE_COMMANDS_H_
#define SOFTLOOKUP_CLIENT_TOOL_RANGE_COMMANDS_H_

#include <CLI/CLI.hpp>

#include "client/tool/command.h"

namespace softlookup::tool {

// Adds the commands about the ranges of a store to `cluster`, the group of commands of that name.
// `session` must outlive it.
void AddRangeCommands(CLI::App* cluster, Session* session);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_RANGE_COMMANDS_H_
